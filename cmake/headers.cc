// Nothing: its precompiled headers are those of the rooms (rooms.cmake).

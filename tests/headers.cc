// A program of nothing: its precompiled headers are those of all tests (CMakeLists.txt).
int main() {}

// The binary interface of wasi_snapshot_preview1, written once: error numbers, rights, flags and the byte
// offsets of every structure that crosses guest memory. Nothing else in the room knows a number of the
// format. Source: the witx description of wasi_snapshot_preview1 (wasi-libc's wasi/api.h is generated from
// it).
#pragma once

#include <cstdint>

namespace hindsight::wasi {

enum class Errno : uint16_t {
  kSuccess = 0,
  k2big,
  kAcces,
  kAddrinuse,
  kAddrnotavail,
  kAfnosupport,
  kAgain,
  kAlready,
  kBadf,
  kBadmsg,
  kBusy,
  kCanceled,
  kChild,
  kConnaborted,
  kConnrefused,
  kConnreset,
  kDeadlk,
  kDestaddrreq,
  kDom,
  kDquot,
  kExist,
  kFault,
  kFbig,
  kHostunreach,
  kIdrm,
  kIlseq,
  kInprogress,
  kIntr,
  kInval,
  kIo,
  kIsconn,
  kIsdir,
  kLoop,
  kMfile,
  kMlink,
  kMsgsize,
  kMultihop,
  kNametoolong,
  kNetdown,
  kNetreset,
  kNetunreach,
  kNfile,
  kNobufs,
  kNodev,
  kNoent,
  kNoexec,
  kNolck,
  kNolink,
  kNomem,
  kNomsg,
  kNoprotoopt,
  kNospc,
  kNosys,
  kNotconn,
  kNotdir,
  kNotempty,
  kNotrecoverable,
  kNotsock,
  kNotsup,
  kNotty,
  kNxio,
  kOverflow,
  kOwnerdead,
  kPerm,
  kPipe,
  kProto,
  kProtonosupport,
  kPrototype,
  kRange,
  kRofs,
  kSpipe,
  kSrch,
  kStale,
  kTimedout,
  kTxtbsy,
  kXdev,
  kNotcapable,
};
static_assert(static_cast<int>(Errno::kNotcapable) == 76);

enum class Filetype : uint8_t {
  kUnknown = 0,  // also what preview 1 has no name for: pipes
  kBlockDevice,
  kCharacterDevice,
  kDirectory,
  kRegularFile,
  kSocketDgram,
  kSocketStream,
  kSymbolicLink,
};

enum class ClockId : uint32_t { kRealtime = 0, kMonotonic, kProcessCpu, kThreadCpu };
enum class Whence : uint8_t { kSet = 0, kCurrent, kEnd };
enum class Advice : uint8_t { kNormal = 0, kSequential, kRandom, kWillNeed, kDontNeed, kNoReuse };
enum class EventType : uint8_t { kClock = 0, kFdRead, kFdWrite };

// What a descriptor may be used for. A descriptor opened through a directory never has more than the
// directory's inheriting rights.
namespace rights {
inline constexpr uint64_t kFdDatasync = 1u << 0;
inline constexpr uint64_t kFdRead = 1u << 1;
inline constexpr uint64_t kFdSeek = 1u << 2;
inline constexpr uint64_t kFdFdstatSetFlags = 1u << 3;
inline constexpr uint64_t kFdSync = 1u << 4;
inline constexpr uint64_t kFdTell = 1u << 5;
inline constexpr uint64_t kFdWrite = 1u << 6;
inline constexpr uint64_t kFdAdvise = 1u << 7;
inline constexpr uint64_t kFdAllocate = 1u << 8;
inline constexpr uint64_t kPathCreateDirectory = 1u << 9;
inline constexpr uint64_t kPathCreateFile = 1u << 10;
inline constexpr uint64_t kPathLinkSource = 1u << 11;
inline constexpr uint64_t kPathLinkTarget = 1u << 12;
inline constexpr uint64_t kPathOpen = 1u << 13;
inline constexpr uint64_t kFdReaddir = 1u << 14;
inline constexpr uint64_t kPathReadlink = 1u << 15;
inline constexpr uint64_t kPathRenameSource = 1u << 16;
inline constexpr uint64_t kPathRenameTarget = 1u << 17;
inline constexpr uint64_t kPathFilestatGet = 1u << 18;
inline constexpr uint64_t kPathFilestatSetSize = 1u << 19;
inline constexpr uint64_t kPathFilestatSetTimes = 1u << 20;
inline constexpr uint64_t kFdFilestatGet = 1u << 21;
inline constexpr uint64_t kFdFilestatSetSize = 1u << 22;
inline constexpr uint64_t kFdFilestatSetTimes = 1u << 23;
inline constexpr uint64_t kPathSymlink = 1u << 24;
inline constexpr uint64_t kPathRemoveDirectory = 1u << 25;
inline constexpr uint64_t kPathUnlinkFile = 1u << 26;
inline constexpr uint64_t kPollFdReadwrite = 1u << 27;
inline constexpr uint64_t kSockShutdown = 1u << 28;
inline constexpr uint64_t kSockAccept = 1u << 29;

// What makes sense on a file or stream, and what on a directory.
inline constexpr uint64_t kAllFile = kFdDatasync | kFdRead | kFdSeek | kFdFdstatSetFlags | kFdSync | kFdTell |
                                     kFdWrite | kFdAdvise | kFdAllocate | kFdFilestatGet |
                                     kFdFilestatSetSize | kFdFilestatSetTimes | kPollFdReadwrite;
inline constexpr uint64_t kAllDirectory =
    kFdFdstatSetFlags | kFdSync | kFdDatasync | kFdAdvise | kPathCreateDirectory | kPathCreateFile |
    kPathLinkSource | kPathLinkTarget | kPathOpen | kFdReaddir | kPathReadlink | kPathRenameSource |
    kPathRenameTarget | kPathFilestatGet | kPathFilestatSetSize | kPathFilestatSetTimes | kFdFilestatGet |
    kFdFilestatSetTimes | kPathSymlink | kPathRemoveDirectory | kPathUnlinkFile | kPollFdReadwrite;
inline constexpr uint64_t kAll = kAllFile | kAllDirectory;
// What a read-only preopened directory takes away, from itself and from everything below it.
inline constexpr uint64_t kModifying =
    kFdWrite | kFdAllocate | kFdFilestatSetSize | kFdFilestatSetTimes | kPathCreateDirectory |
    kPathCreateFile | kPathLinkSource | kPathLinkTarget | kPathRenameSource | kPathRenameTarget |
    kPathFilestatSetSize | kPathFilestatSetTimes | kPathSymlink | kPathRemoveDirectory | kPathUnlinkFile;
}  // namespace rights

namespace fdflags {
inline constexpr uint16_t kAppend = 1u << 0;
inline constexpr uint16_t kDsync = 1u << 1;
inline constexpr uint16_t kNonblock = 1u << 2;
inline constexpr uint16_t kRsync = 1u << 3;
inline constexpr uint16_t kSync = 1u << 4;
inline constexpr uint16_t kAll = 0x1f;
}  // namespace fdflags

namespace oflags {
inline constexpr uint16_t kCreat = 1u << 0;
inline constexpr uint16_t kDirectory = 1u << 1;
inline constexpr uint16_t kExcl = 1u << 2;
inline constexpr uint16_t kTrunc = 1u << 3;
inline constexpr uint16_t kAll = 0xf;
}  // namespace oflags

namespace fstflags {
inline constexpr uint16_t kAtim = 1u << 0;
inline constexpr uint16_t kAtimNow = 1u << 1;
inline constexpr uint16_t kMtim = 1u << 2;
inline constexpr uint16_t kMtimNow = 1u << 3;
inline constexpr uint16_t kAll = 0xf;
}  // namespace fstflags

inline constexpr uint32_t kLookupSymlinkFollow = 1u << 0;
inline constexpr uint16_t kSubscriptionClockAbstime = 1u << 0;
inline constexpr uint16_t kEventHangup = 1u << 0;
inline constexpr uint8_t kPreopenTypeDir = 0;

// Byte offsets and sizes of the structures in guest memory.
namespace layout {
namespace iovec {
inline constexpr uint32_t kBuf = 0, kLen = 4, kSize = 8;
}
namespace prestat {
inline constexpr uint32_t kTag = 0, kNameLen = 4, kSize = 8;
}
namespace fdstat {
inline constexpr uint32_t kFiletype = 0, kFlags = 2, kRightsBase = 8, kRightsInheriting = 16, kSize = 24;
}
struct Filestat {
  uint32_t dev, ino, filetype, nlink, nlink_bytes, file_size, atim, mtim, ctim, size;
};
inline constexpr Filestat kFilestat{0, 8, 16, 24, 8, 32, 40, 48, 56, 64};
inline constexpr Filestat kFilestat0{0, 8, 16, 20, 4, 24, 32, 40, 48, 56};  // of wasi_unstable
namespace dirent {
inline constexpr uint32_t kNext = 0, kIno = 8, kNamlen = 16, kType = 20, kSize = 24;
}
struct Subscription {
  uint32_t userdata, tag, clock_id, clock_timeout, clock_flags, fd, size;
};
inline constexpr Subscription kSubscription{0, 8, 16, 24, 40, 16, 48};
inline constexpr Subscription kSubscription0{0,  8,  24, 32,
                                             48, 16, 56};  // of wasi_unstable: a clock has a name too
namespace event {
inline constexpr uint32_t kUserdata = 0, kError = 8, kType = 10, kNbytes = 16, kFlags = 24, kSize = 32;
}
}  // namespace layout

}  // namespace hindsight::wasi

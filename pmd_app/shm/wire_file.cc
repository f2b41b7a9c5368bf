// SPDX-License-Identifier: BSD-3-Clause
#include "shm/wire_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>

namespace ulc::shm {
namespace {

constexpr std::uint64_t kMagic = 0x31'30'65'72'69'77'63'75;        // "ucwire01"
constexpr std::uint64_t kMagicMaking = 0x30'30'65'72'69'77'63'75;  // "ucwire00"
constexpr int kMakingMillisecondsMax = 10'000;  ///< the file is being made by another process

Err failed(const std::string& path, const char* what, std::string& why) {
    const int number = errno;
    why = path + ": " + what + ": " + std::strerror(number);
    switch (number) {
        case EACCES:
        case EPERM:
            why += "; take a file of your own, in a folder that you may write";
            return Err::kPermission;
        case ENOSPC:
        case ENOMEM:
            why += "; take a path on a tmpfs with more free space, or a smaller ring=";
            return Err::kNoMemory;
        case ENOENT:
        case ENOTDIR:
            why += "; its folder must be there";
            return Err::kInvalid;
        default:
            return Err::kSystem;
    }
}

struct flock lock_of(unsigned octet, short type, unsigned octets = 1) {
    struct flock lock = {};
    lock.l_type = type;
    lock.l_whence = SEEK_SET;
    lock.l_start = octet;
    lock.l_len = octets;
    return lock;
}

/// Takes the lock under which the file is made and opened. Waits, but not without end: its holder
/// may be stopped.
Err lock_making(int file, const std::string& path, std::string& why) {
    struct flock making = lock_of(0, F_WRLCK);
    for (int ms = 0; fcntl(file, F_OFD_SETLK, &making) != 0; ++ms) {
        if (errno != EAGAIN && errno != EACCES && errno != EINTR)
            return failed(path, "cannot be locked", why);
        if (ms == kMakingMillisecondsMax) {
            why = path + ": another process has it locked since " +
                  std::to_string(kMakingMillisecondsMax / 1000) +
                  " s; end that process (lsof names it), or take another path";
            return Err::kTimeout;
        }
        const timespec nap{.tv_sec = 0, .tv_nsec = 1'000'000};
        nanosleep(&nap, nullptr);
    }
    return Err::kOk;
}

/// Refuses a file that another user could change: the engines of a wire trust what it says.
Err check_owner(const struct stat& state, const std::string& path, std::string& why) {
    if (state.st_uid != geteuid()) {
        why = path + " belongs to user " + std::to_string(state.st_uid) + ", not to user " +
              std::to_string(geteuid()) + "; take another path";
        return Err::kPermission;
    }
    if ((state.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
        why = path + " is open to other users; run: chmod 600 " + path;
        return Err::kPermission;
    }
    if (state.st_nlink > 1) {
        why = path + " has a second name (a hard link); take another path";
        return Err::kPermission;
    }
    return Err::kOk;
}

}  // namespace

struct alignas(kCacheLine) WireFile::Head {
    std::uint64_t magic;
    std::uint64_t nonce;
    Shape shape;
};

struct WireFile::Station {
    RingHead ring;
    Line cursors[kStationsMax];
};

Err WireFile::open(const std::string& path, const Shape& shape, unsigned station,
                   std::unique_ptr<WireFile>& out, std::string& why) {
    ULC_CHECK(shape.stations <= kStationsMax && station < shape.stations &&
              ring_octets_valid(shape.ring_octets));
    std::unique_ptr<WireFile> wire(new WireFile);
    wire->shape_ = shape;
    wire->station_ = station;
    constexpr int kFlags = O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
    wire->file_ = ::open(path.c_str(), kFlags, 0600);
    if (wire->file_ < 0) return failed(path, "cannot be opened", why);
    if (const Err error = lock_making(wire->file_, path, why); error != Err::kOk) return error;
    if (const Err error = wire->prepare(path, why); error != Err::kOk) return error;
    // Before the file may be made again: it is made again only while no station is held.
    struct flock mine = lock_of(1 + station, F_WRLCK);
    if (fcntl(wire->file_, F_OFD_SETLK, &mine) != 0) {
        why = path + ": station " + std::to_string(station) +
              " is held by another engine; give each engine a different station=";
        return Err::kInvalid;
    }
    struct flock making = lock_of(0, F_UNLCK);
    fcntl(wire->file_, F_OFD_SETLK, &making);
    out = std::move(wire);
    return Err::kOk;
}

/// Returns the kind of the file. A maker that was killed leaves a short file, one whose head is
/// empty, or one whose head says that it is being made.
WireFile::Content WireFile::content(std::uint64_t size) const {
    std::array<std::byte, sizeof(Head)> octets{};
    const ssize_t got = pread(file_, octets.data(), octets.size(), 0);
    Head head{};
    std::memcpy(&head, octets.data(), sizeof head);
    if (got == static_cast<ssize_t>(sizeof head) && head.magic == kMagic)
        return head.shape == shape_ && size == this->octets() ? Content::kWire
                                                              : Content::kOtherWire;
    const bool empty =
        std::ranges::all_of(octets, [](std::byte octet) { return octet == std::byte{0}; });
    return empty || head.magic == kMagicMaking ? Content::kUnfinished : Content::kNoWire;
}

/// Makes an empty or unfinished file a wire, or checks that it is one of this shape. A wire of
/// another shape is made again if no engine is on it. Under the lock.
Err WireFile::prepare(const std::string& path, std::string& why) {
    struct stat state = {};
    if (fstat(file_, &state) != 0) return failed(path, "cannot be looked at", why);
    if (!S_ISREG(state.st_mode)) {
        why = path + " is no regular file; take another path";
        return Err::kInvalid;
    }
    const auto size = static_cast<std::uint64_t>(state.st_size);
    const Content content = this->content(size);
    if (content == Content::kNoWire) {
        why = path + " is not a wire; remove it if it is not needed, or take another path";
        return Err::kInvalid;
    }
    if (const Err error = check_owner(state, path, why); error != Err::kOk) return error;
    const bool fresh = content != Content::kWire;
    if (fresh && any_station_held()) {
        why = path +
              " is a wire of another shape, or none; give every engine of the wire the same "
              "stations= and ring=";
        return Err::kInvalid;
    }
    if (fresh && size > 0 && ftruncate(file_, 0) != 0)
        return failed(path, "cannot be made again", why);
    // Allocated at once: a tmpfs that is full would end the process later, by a signal.
    if (fresh) {
        errno = posix_fallocate(file_, 0, static_cast<off_t>(octets()));
        if (errno != 0) {
            const Err error = failed(path, "does not fit", why);
            static_cast<void>(!ftruncate(file_, 0));
            return error;
        }
    }
    if (const Err error = map(path, why); error != Err::kOk) return error;
    if (fresh) {
        head().magic = kMagicMaking;
        head().shape = shape_;
        if (getrandom(&head().nonce, sizeof head().nonce, 0) != sizeof head().nonce)
            return failed(path, "got no random number", why);
        for (unsigned reader = 0; reader < shape_.stations; ++reader)
            for (unsigned writer = 0; writer < shape_.stations; ++writer)
                cursor(reader, writer)->value.store(kAbsent, std::memory_order_relaxed);
        std::atomic_ref(head().magic).store(kMagic, std::memory_order_release);
    }
    return Err::kOk;
}

Err WireFile::map(const std::string& path, std::string& why) {
    void* memory = mmap(nullptr, octets(), PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
    if (memory == MAP_FAILED) return failed(path, "cannot be mapped", why);
    memory_ = static_cast<std::byte*>(memory);
    return Err::kOk;
}

WireFile::~WireFile() {
    if (memory_ != nullptr) munmap(memory_, octets());
    if (file_ >= 0) close(file_);  // and its locks with it
}

void WireFile::abandon() noexcept {
    if (memory_ != nullptr) munmap(memory_, octets());
    memory_ = nullptr;
    if (file_ >= 0) close(file_);
    file_ = -1;
}

std::uint64_t WireFile::octets() const noexcept {
    return sizeof(Head) + shape_.stations * (sizeof(Station) + std::uint64_t{shape_.ring_octets});
}

WireFile::Head& WireFile::head() const noexcept { return *reinterpret_cast<Head*>(memory_); }

WireFile::Station& WireFile::of(unsigned station) const noexcept {
    return reinterpret_cast<Station*>(memory_ + sizeof(Head))[station];
}

std::uint64_t WireFile::nonce() const noexcept { return head().nonce; }

RingHead* WireFile::ring_head(unsigned station) const noexcept { return &of(station).ring; }

std::byte* WireFile::ring(unsigned station) const noexcept {
    return memory_ + sizeof(Head) + shape_.stations * sizeof(Station) +
           std::uint64_t{station} * shape_.ring_octets;
}

Line* WireFile::cursor(unsigned reader, unsigned writer) const noexcept {
    return &of(reader).cursors[writer];
}

bool WireFile::any_station_held() const noexcept {
    struct flock lock = lock_of(1, F_WRLCK, kStationsMax);
    return fcntl(file_, F_OFD_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

bool WireFile::held(unsigned station) const noexcept {
    struct flock lock = lock_of(1 + station, F_WRLCK);
    return fcntl(file_, F_OFD_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

}  // namespace ulc::shm

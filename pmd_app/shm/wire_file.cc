#include "shm/wire_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace ulc::shm {
namespace {

constexpr std::uint64_t kMagic = 0x31'30'65'72'69'77'63'75;  // "ucwire01"

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
            why += "; take a path on a tmpfs with room, or a smaller ring=";
            return Err::kNoMemory;
        case ENOENT:
        case ENOTDIR:
            why += "; its folder must be there";
            return Err::kInvalid;
        default:
            return Err::kSystem;
    }
}

struct flock lock_of(unsigned octet, short type) {
    struct flock lock = {};
    lock.l_type = type;
    lock.l_whence = SEEK_SET;
    lock.l_start = octet;
    lock.l_len = 1;
    return lock;
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
    wire->file_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (wire->file_ < 0) return failed(path, "cannot be opened", why);
    struct flock making = lock_of(0, F_WRLCK);
    if (fcntl(wire->file_, F_OFD_SETLKW, &making) != 0)
        return failed(path, "cannot be locked", why);
    if (const Err error = wire->prepare(path, why); error != Err::kOk) return error;
    making.l_type = F_UNLCK;
    fcntl(wire->file_, F_OFD_SETLK, &making);
    struct flock mine = lock_of(1 + station, F_WRLCK);
    if (fcntl(wire->file_, F_OFD_SETLK, &mine) != 0) {
        why = path + ": station " + std::to_string(station) +
              " is held by another engine; give each engine a station= of its own";
        return Err::kInvalid;
    }
    out = std::move(wire);
    return Err::kOk;
}

/// Makes an empty file a wire, or sees that it is one of this shape. Under the lock.
Err WireFile::prepare(const std::string& path, std::string& why) {
    struct stat state = {};
    if (fstat(file_, &state) != 0) return failed(path, "cannot be looked at", why);
    const bool fresh = state.st_size == 0;
    // All of it now: a tmpfs that is full would end the process later, by a signal.
    if (fresh) {
        errno = posix_fallocate(file_, 0, static_cast<off_t>(octets()));
        if (errno != 0) {
            const Err error = failed(path, "has no room", why);
            static_cast<void>(!ftruncate(file_, 0));
            return error;
        }
    } else if (static_cast<std::uint64_t>(state.st_size) != octets()) {
        why = path +
              " is a wire of another shape, or none; give every engine of the wire the same "
              "stations= and ring=";
        return Err::kInvalid;
    }
    if (const Err error = map(path, why); error != Err::kOk) return error;
    if (fresh) {
        head().shape = shape_;
        if (getrandom(&head().nonce, sizeof head().nonce, 0) != sizeof head().nonce)
            return failed(path, "got no random number", why);
        for (unsigned reader = 0; reader < shape_.stations; ++reader)
            for (unsigned writer = 0; writer < shape_.stations; ++writer)
                cursor(reader, writer)->value.store(kAbsent, std::memory_order_relaxed);
        head().magic = kMagic;
    }
    if (head().magic == kMagic && head().shape == shape_) return Err::kOk;
    why = path + " is not a wire of " + std::to_string(shape_.stations) +
          " stations; remove it if no engine uses it";
    return Err::kInvalid;
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

bool WireFile::held(unsigned station) const noexcept {
    struct flock lock = lock_of(1 + station, F_WRLCK);
    return fcntl(file_, F_OFD_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

}  // namespace ulc::shm

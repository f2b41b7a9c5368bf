// SPDX-License-Identifier: BSD-3-Clause
// The linker sends this program's malloc, calloc, aligned_alloc and free here (--wrap in
// meson.build); new and delete are replaced to call them.
#include "tests/unit/base/heap_watch.h"

#include <cstdlib>
#include <functional>
#include <mutex>
#include <new>
#include <unordered_map>

// NOLINTBEGIN(bugprone-reserved-identifier): the linker's names
extern "C" {
void* __real_malloc(std::size_t octets);
void* __real_calloc(std::size_t count, std::size_t octets);
void* __real_aligned_alloc(std::size_t alignment, std::size_t octets);
void __real_free(void* memory);
}

namespace {

/// Takes the memory of the table below past the count.
template <typename T>
struct Uncounted {
    using value_type = T;
    Uncounted() = default;
    template <typename U>
    explicit Uncounted(const Uncounted<U>& /*other*/) noexcept {}
    T* allocate(std::size_t n) {
        // T is a pointer for the array of buckets.
        void* memory = __real_malloc(n * sizeof(T));  // NOLINT(bugprone-sizeof-expression)
        if (memory == nullptr) throw std::bad_alloc();
        return static_cast<T*>(memory);
    }
    void deallocate(T* memory, std::size_t /*n*/) noexcept { __real_free(memory); }
    bool operator==(const Uncounted& /*other*/) const noexcept { return true; }
};

/// The octets asked for of each block in use. Allocators round them, each in another way.
class Blocks {
public:
    void* add(void* memory, std::size_t octets) {
        const std::scoped_lock lock(mutex_);
        if (memory != nullptr && sizes_.emplace(memory, octets).second) octets_ += octets;
        return memory;
    }
    /// A block of a library that was linked otherwise is not in the table.
    void remove(void* memory) {
        const std::scoped_lock lock(mutex_);
        const auto at = sizes_.find(memory);
        if (at == sizes_.end()) return;
        octets_ -= at->second;
        sizes_.erase(at);
    }
    std::size_t octets() {
        const std::scoped_lock lock(mutex_);
        return octets_;
    }

private:
    std::mutex mutex_;
    std::size_t octets_ = 0;
    std::unordered_map<void*, std::size_t, std::hash<void*>, std::equal_to<>,
                       Uncounted<std::pair<void* const, std::size_t>>>
        sizes_;
};

/// Lives to the end of the process: objects free memory until then.
Blocks& blocks() {
    alignas(Blocks) static std::byte memory[sizeof(Blocks)];
    static Blocks* const all = new (memory) Blocks;
    return *all;
}

void* or_throw(void* memory) {
    if (memory == nullptr) throw std::bad_alloc();
    return memory;
}

}  // namespace

extern "C" {
void* __wrap_malloc(std::size_t octets) { return blocks().add(__real_malloc(octets), octets); }
void* __wrap_calloc(std::size_t count, std::size_t octets) {
    return blocks().add(__real_calloc(count, octets), count * octets);
}
void* __wrap_aligned_alloc(std::size_t alignment, std::size_t octets) {
    return blocks().add(__real_aligned_alloc(alignment, octets), octets);
}
void __wrap_free(void* memory) {
    blocks().remove(memory);
    __real_free(memory);
}
}
// NOLINTEND(bugprone-reserved-identifier)

void* operator new(std::size_t octets) { return or_throw(std::malloc(octets)); }
void* operator new(std::size_t octets, std::align_val_t alignment) {
    const auto a = static_cast<std::size_t>(alignment);
    return or_throw(std::aligned_alloc(a, (octets + a - 1) / a * a));
}
void* operator new(std::size_t octets, const std::nothrow_t& /*tag*/) noexcept {
    return std::malloc(octets);
}
// Arrays too: a sanitizer's own would not come here.
void* operator new[](std::size_t octets) { return operator new(octets); }
void* operator new[](std::size_t octets, const std::nothrow_t& /*tag*/) noexcept {
    return std::malloc(octets);
}
void* operator new[](std::size_t octets, std::align_val_t alignment) {
    return operator new(octets, alignment);
}
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

namespace ulc::test {
std::size_t heap_octets() noexcept { return blocks().octets(); }
}  // namespace ulc::test

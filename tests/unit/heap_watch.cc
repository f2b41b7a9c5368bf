// The linker sends this program's malloc, calloc, aligned_alloc and free here (--wrap in meson.build); new and delete
// are replaced to call them.
#include "heap_watch.h"

#include <malloc.h>

#include <atomic>
#include <cstdlib>
#include <new>

namespace {

std::atomic<std::size_t> g_octets{0};

void* counted(void* memory) noexcept {
    g_octets += malloc_usable_size(memory);
    return memory;
}

void* or_throw(void* memory) {
    if (memory == nullptr) throw std::bad_alloc();
    return memory;
}

}  // namespace

// NOLINTBEGIN(bugprone-reserved-identifier): the linker's names
extern "C" {
void* __real_malloc(std::size_t octets);
void* __real_calloc(std::size_t count, std::size_t octets);
void* __real_aligned_alloc(std::size_t alignment, std::size_t octets);
void __real_free(void* memory);

void* __wrap_malloc(std::size_t octets) { return counted(__real_malloc(octets)); }
void* __wrap_calloc(std::size_t count, std::size_t octets) {
    return counted(__real_calloc(count, octets));
}
void* __wrap_aligned_alloc(std::size_t alignment, std::size_t octets) {
    return counted(__real_aligned_alloc(alignment, octets));
}
void __wrap_free(void* memory) {
    g_octets -= malloc_usable_size(memory);
    __real_free(memory);
}
}
// NOLINTEND(bugprone-reserved-identifier)

void* operator new(std::size_t octets) { return or_throw(std::malloc(octets)); }
void* operator new(std::size_t octets, std::align_val_t alignment) {
    const auto a = static_cast<std::size_t>(alignment);
    return or_throw(std::aligned_alloc(a, (octets + a - 1) / a * a));
}
// Arrays too: a sanitizer's own would not come here.
void* operator new[](std::size_t octets) { return operator new(octets); }
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
std::size_t heap_octets() noexcept { return g_octets; }
}  // namespace ulc::test

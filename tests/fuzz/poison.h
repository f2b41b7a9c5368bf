// SPDX-License-Identifier: BSD-3-Clause
// Memory that no code may touch from now on, in builds with the address sanitizer.
#pragma once

#ifdef __SANITIZE_ADDRESS__
#define ULC_FUZZ_ADDRESS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ULC_FUZZ_ADDRESS_SANITIZER 1
#endif
#endif
#ifdef ULC_FUZZ_ADDRESS_SANITIZER
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(address, octets) ((void)(address), (void)(octets))
#define ASAN_UNPOISON_MEMORY_REGION(address, octets) ((void)(address), (void)(octets))
#endif

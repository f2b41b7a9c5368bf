// SPDX-License-Identifier: BSD-3-Clause
// The identity of a program: its code as it is loaded, which no relocation changes.
#include "express/build_id.h"

#include <dlfcn.h>
#include <link.h>

#include <cstring>

#include "base/fnv.h"

namespace ulc::express {
namespace {

/// Hashes the code of the first object, which is the program.
int hash_program(dl_phdr_info* object, std::size_t /*size*/, void* into) {
    auto& hash = *static_cast<std::uint64_t*>(into);
    for (int n = 0; n < object->dlpi_phnum; ++n) {
        const ElfW(Phdr)& part = object->dlpi_phdr[n];
        const bool is_code = part.p_type == PT_LOAD && (part.p_flags & PF_X) != 0 &&
                             (part.p_flags & (PF_W | PF_R)) == PF_R;
        if (!is_code) continue;
        const auto* at = reinterpret_cast<const unsigned char*>(object->dlpi_addr + part.p_vaddr);
        std::uint64_t word = 0;
        for (std::size_t left = part.p_filesz; left > 0;) {
            const std::size_t bytes = left < sizeof word ? left : sizeof word;
            word = 0;
            std::memcpy(&word, at, bytes);
            hash = fnv1a(hash, word);
            at += bytes;
            left -= bytes;
        }
    }
    return 1;
}

}  // namespace

std::uint64_t identity_of(const std::vector<express_handler>& handlers) {
    std::uint64_t hash = kFnvBasis;
    dl_iterate_phdr(hash_program, &hash);
    for (const express_handler handler : handlers) {
        Dl_info object{};
        const auto place = reinterpret_cast<std::uintptr_t>(handler);
        const bool found = dladdr(reinterpret_cast<void*>(handler), &object) != 0;
        hash = fnv1a(hash, found ? place - reinterpret_cast<std::uintptr_t>(object.dli_fbase) : 0);
    }
    return fnv1a(hash, handlers.size());
}

}  // namespace ulc::express

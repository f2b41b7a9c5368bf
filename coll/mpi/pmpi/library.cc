// SPDX-License-Identifier: BSD-3-Clause
// Finds the functions of the MPICH that the program has loaded. Looked up at run time: the program
// may have loaded it for itself alone (Python), or be no MPI program.
#include <dlfcn.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "coll/mpi/pmpi/mpich.h"

namespace ulc::pmpi {
namespace {

[[noreturn]] void refuse(const char* why, const char* what) {
    std::fprintf(stderr, "ulc: libulc-mpich.so cannot serve this program: %s%s; unset LD_PRELOAD\n",
                 why, what);
    ::_exit(1);
}

/// Returns the library that has the PMPI functions.
void* find_library() {
    if (::dlsym(RTLD_DEFAULT, "PMPI_Init") != nullptr) return RTLD_DEFAULT;
    constexpr const char* kNames[] = {"libmpich.so.12", "libmpi.so.12"};  // Intel: the second
    for (const char* name : kNames) {
        void* handle = ::dlopen(name, RTLD_LAZY | RTLD_NOLOAD);
        if (handle != nullptr) return handle;
    }
    refuse("it calls MPI and has loaded no MPICH", "");
}

template <typename Function>
void find(void* library, const char* name, Function& out) {
    void* found = ::dlsym(library, name);
    if (found == nullptr) refuse("its MPI has no function ", name);
    std::memcpy(&out, &found, sizeof out);
}

Mpich find_all() {
    Mpich all{};
    void* library = find_library();
    char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length = 0;
    find(library, "PMPI_Get_library_version", all.Get_library_version);
    all.Get_library_version(version, &length);
    version[strcspn(version, ",\n")] = '\0';
    if (std::strncmp(version, "Open MPI", 8) == 0) refuse("it uses ", version);
#define ULC_FIND(name) find(library, "PMPI_" #name, all.name);
#define ULC_FIND_WIDE(name) ULC_FIND(name) ULC_FIND(name##_c)
    ULC_PMPI_WIDE(ULC_FIND_WIDE)
    ULC_PMPI_PLAIN(ULC_FIND)
#undef ULC_FIND_WIDE
#undef ULC_FIND
    return all;
}

}  // namespace

const Mpich& mpich() {
    static const Mpich found = find_all();
    return found;
}

}  // namespace ulc::pmpi

// SPDX-License-Identifier: BSD-3-Clause
// An engine core for the test of upgrades. It is the real one with other exports and imports, which
// the name of its file chooses:
//   …interface…  the table has another number        …schema…  the import is refused
//   …slow…       the import takes 400 ms             other     the import begins again
// The export has four octets. It is busy while there is a file "busy" in the folder of the library.
#undef ulc_core_table  // the build renames the one of the real core

#include <dlfcn.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <string>

#include "main/core/core_table.h"

extern "C" const ulc::daemon::CoreTable* ulc_plain_core_table();

namespace ulc::daemon {
namespace {

/// The loader knows the library by a descriptor, which names the file.
std::string own_file() {
    Dl_info info{};
    if (dladdr(reinterpret_cast<const void*>(&own_file), &info) == 0) return "";
    std::array<char, 4096> target{};
    const ssize_t length = readlink(info.dli_fname, target.data(), target.size() - 1);
    return length > 0 ? std::string(target.data()) : info.dli_fname;
}

bool is_named(const char* word) {
    const std::string file = own_file();
    return file.substr(file.rfind('/')).find(word) != std::string::npos;
}

std::string busy_file() {
    const std::string file = own_file();
    return file.substr(0, file.rfind('/')) + "/busy";
}

CoreExport export_state(CoreObject* /*core*/, CoreState* out, CoreText why) {
    static constexpr std::array<std::byte, 4> kOctets{};
    if (access(busy_file().c_str(), F_OK) == 0) {
        std::snprintf(why.text, why.octets, "endpoint 0x123 carries out a collective");
        return CoreExport::kBusy;
    }
    out->octets = kOctets.data();
    out->size = kOctets.size();
    return CoreExport::kDone;
}

void evict(CoreObject* /*core*/, Nanos /*now*/, CoreText who) {
    unlink(busy_file().c_str());
    std::snprintf(who.text, who.octets, "process 17 of user 18");
}

std::int32_t import_state(CoreObject* /*core*/, const CoreState* /*state*/,
                          const CoreRegion* /*regions*/, std::size_t /*region_count*/,
                          CoreText why) {
    if (is_named("schema")) {
        std::snprintf(why.text, why.octets, "Session has version 3, this library knows 2");
        return static_cast<std::int32_t>(Err::kVersion);
    }
    if (is_named("slow")) {
        const timespec length{0, 400'000'000};
        nanosleep(&length, nullptr);
    }
    return 0;
}

}  // namespace
}  // namespace ulc::daemon

extern "C" __attribute__((visibility("default"))) const ulc::daemon::CoreTable* ulc_core_table() {
    using namespace ulc::daemon;
    static CoreTable table = *ulc_plain_core_table();
    table.export_state = export_state;
    table.import_state = import_state;
    table.evict = evict;
    if (is_named("interface")) table.interface = 99;
    return &table;
}

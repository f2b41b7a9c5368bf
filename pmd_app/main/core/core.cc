// SPDX-License-Identifier: BSD-3-Clause
#include "main/core/core.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "base/check.h"
#include "base/clock.h"

namespace ulc::daemon {
namespace {

std::string program_folder() {
    std::array<char, 4096> path{};
    const ssize_t length = readlink("/proc/self/exe", path.data(), path.size() - 1);
    if (length <= 0) return ".";
    const std::string program(path.data(), static_cast<std::size_t>(length));
    return program.substr(0, program.rfind('/'));
}

bool is_owned(const struct stat& status) {
    const bool owner = status.st_uid == 0 || status.st_uid == geteuid();
    return S_ISREG(status.st_mode) && owner && (status.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

const char* text_of_errno() { return std::strerror(errno); }  // NOLINT(concurrency-mt-unsafe)

}  // namespace

std::string CoreLibrary::usual_file() {
    const std::string here = program_folder();
    for (const std::string& folder : {here, here + "/../" ULC_LIBDIR "/ulc"}) {
        std::string file = folder + "/" + kCoreFile;
        if (access(file.c_str(), R_OK) == 0) return file;
    }
    return ULC_CORE_FOLDER + std::string("/") + kCoreFile;
}

// The loader knows libraries by name and by inode. A file that replaced another one has its name,
// so it is named by its descriptor, whose number is taken as long as the library is loaded.
Err CoreLibrary::load(const std::string& file, CoreFileRule rule,
                      std::shared_ptr<const CoreLibrary>& out, std::string& why) {
    const int fd = open(file.c_str(), O_RDONLY | O_CLOEXEC);
    struct stat status {};
    if (fd < 0 || fstat(fd, &status) != 0) {
        why = fmt::format("the engine core {} cannot be read: {}; install it, or name another file",
                          file, text_of_errno());
        if (fd >= 0) close(fd);
        return Err::kSystem;
    }
    if (rule == CoreFileRule::kOwned && !is_owned(status)) {
        close(fd);
        why = fmt::format(
            "the engine core {} is not a file that only root or the engine's user can change; run: "
            "chown root {} && chmod go-w {}",
            file, file, file);
        return Err::kPermission;
    }
    const std::string name = fmt::format("/proc/self/fd/{}", fd);
    void* handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
        const char* cause = dlerror();  // NOLINT(concurrency-mt-unsafe): glibc's is of the thread
        why = fmt::format("the engine core {} cannot be loaded: {}; install one of this machine",
                          file, cause == nullptr ? "unknown" : cause);
        close(fd);
        return Err::kSystem;
    }
    std::shared_ptr<CoreLibrary> library(new CoreLibrary(fd, handle));
    const auto entry = reinterpret_cast<CoreEntry>(dlsym(handle, kCoreEntry));
    library->table_ = entry == nullptr ? nullptr : entry();
    if (library->table_ == nullptr) {
        why =
            fmt::format("{} is no engine core: it has no {}; name {}", file, kCoreEntry, kCoreFile);
        return Err::kVersion;
    }
    const CoreTable& table = *library->table_;
    if (table.interface != kCoreInterface || table.octets != sizeof table ||
        table.layout != core_layout()) {
        why = fmt::format(
            "the engine core {} has interface {}.{:x}, this engine has {}.{:x}; install both of "
            "one "
            "build, and restart the engine",
            file, table.interface, table.layout, kCoreInterface, core_layout());
        return Err::kVersion;
    }
    out = std::move(library);
    return Err::kOk;
}

CoreLibrary::~CoreLibrary() {
    dlclose(handle_);
    close(fd_);
}

Err Core::create(std::shared_ptr<const CoreLibrary> library, const engine::EngineConfig& config,
                 std::span<const Port> ports, std::unique_ptr<Core>& out) {
    ULC_CHECK(config.counters != nullptr);
    std::unique_ptr<Core> core(new Core(std::move(library), config, ports));
    if (core->object_ == nullptr) return Err::kNoMemory;
    out = std::move(core);
    return Err::kOk;
}

Core::Core(std::shared_ptr<const CoreLibrary> library, const engine::EngineConfig& config,
           std::span<const Port> ports)
    : table_(&library->table()),
      object_(table_->create(&config, ports.data(), static_cast<std::uint32_t>(ports.size()))),
      library_(std::move(library)),
      config_(config),
      ports_(ports.begin(), ports.end()) {
    regions_.reserve(config.endpoints_max);
}

Core::~Core() {
    if (object_ != nullptr) table_->destroy(object_);
}

Result<engine::EndpointId> Core::reserve(std::uint32_t net, const engine::Claimant& claimant,
                                         std::string& why) {
    std::array<char, abi::kTextOctetsMax> text{};
    engine::EndpointId endpoint = 0;
    const auto error = static_cast<Err>(
        table_->reserve(object_, net, &claimant, &endpoint, {text.data(), text.size()}));
    if (error == Err::kOk) return endpoint;
    if (text[0] != 0) why = text.data();
    return error;
}

Err Core::admit(engine::EndpointId endpoint, void* region, const abi::RegionLayout& layout,
                const engine::Interrupt& interrupt) {
    const auto error = static_cast<Err>(table_->admit(object_, endpoint, region, &layout));
    if (error != Err::kOk) return error;
    table_->set_interrupt(object_, endpoint, &interrupt);
    regions_.push_back({endpoint, region, layout, interrupt});
    return Err::kOk;
}

void Core::detach(engine::EndpointId endpoint, engine::DetachReason reason, Nanos now) {
    const bool died = reason == engine::DetachReason::kDied;
    table_->detach(object_, endpoint, died, now);
    const auto at = std::ranges::find(regions_, endpoint, &CoreRegion::endpoint);
    if (at == regions_.end()) return;
    at->interrupt = {};
}

bool Core::detached(engine::EndpointId endpoint) {
    if (!table_->detached(object_, endpoint)) return false;
    forget_region(endpoint);
    return true;
}

void IdleCore::destroy() noexcept {
    if (object_ != nullptr) library_->table().destroy(object_);
    object_ = nullptr;
}

Err Core::make_next(std::shared_ptr<const CoreLibrary> library, IdleCore& out) const {
    ULC_CHECK(!out.made());
    out.object_ =
        library->table().create(&config_, ports_.data(), static_cast<std::uint32_t>(ports_.size()));
    out.library_ = std::move(library);
    return out.made() ? Err::kOk : Err::kNoMemory;
}

// Export and import change nothing in the core that runs, so every return before the switch is the
// rollback.
CoreExport Core::replace_by(IdleCore& next, Nanos blackout_max, UpgradeFigures& figures,
                            std::string& why) {
    std::array<char, abi::kTextOctetsMax> text{};
    const Nanos begun = monotonic_now();
    CoreState state;
    const CoreExport exported = table_->export_state(object_, &state, {text.data(), text.size()});
    const Nanos exported_at = monotonic_now();
    ++figures.tries;
    figures.exporting = exported_at - begun;
    if (exported != CoreExport::kDone) {
        why = text.data();
        return exported;
    }
    figures.octets = state.size;
    figures.frames = static_cast<std::uint32_t>(state.frame_count);
    const auto too_late = [&](Nanos now) {
        if (now - begun <= blackout_max) return false;
        why = fmt::format(
            "the upgrade was given up after {} ms without a round (export {} ms, {} octets, {} "
            "frames); at most {} ms are allowed: try again with less traffic, or restart the "
            "engine",
            (now - begun) / kMillisecond, figures.exporting / kMillisecond, figures.octets,
            figures.frames, blackout_max / kMillisecond);
        return true;
    };
    bool done = !too_late(exported_at);
    if (done) {
        const CoreTable& table = next.library_->table();
        const auto error = static_cast<Err>(table.import_state(
            next.object_, &state, regions_.data(), regions_.size(), {text.data(), text.size()}));
        const Nanos imported_at = monotonic_now();
        figures.importing = imported_at - exported_at;
        if (error != Err::kOk) why = text.data();
        done = error == Err::kOk && !too_late(imported_at);
        if (done) {
            table_->drop_state(object_);
            std::swap(library_, next.library_);
            std::swap(object_, next.object_);
            table_ = &table;
            figures.endpoints = table_->endpoints(object_);
            const Nanos switched_at = monotonic_now();
            figures.switching = switched_at - imported_at;
            figures.blackout = switched_at - begun;
            return CoreExport::kDone;
        }
    }
    table_->drop_state(object_);
    figures.blackout = monotonic_now() - begun;
    return CoreExport::kRefused;
}

std::string Core::evict(Nanos now) {
    std::array<char, abi::kTextOctetsMax> who{};
    table_->evict(object_, now, {who.data(), who.size()});
    return who.data();
}

void Core::forget_region(engine::EndpointId endpoint) {
    std::erase_if(regions_, [&](const CoreRegion& each) { return each.endpoint == endpoint; });
}

}  // namespace ulc::daemon

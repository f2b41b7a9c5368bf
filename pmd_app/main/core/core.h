// SPDX-License-Identifier: BSD-3-Clause
// This file loads libulc-core.so and calls the engine core in it. Used by the daemon: the engine's
// loop makes the rounds, the attach server's calls come through EngineCalls. The core is reached by
// one table and one pointer, which an upgrade exchanges between two rounds.
//
// Invariant: regions() names each endpoint that is admitted and whose memory the core may touch.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "main/core/core_table.h"

namespace ulc::daemon {

enum class CoreFileRule : std::uint8_t {
    kAny,    ///< it lies where the program does
    kOwned,  ///< only root and the engine's user may be able to change it
};

/// A loaded library; unloaded with its last owner.
class CoreLibrary {
public:
    /// Returns the file that an engine starts with: in the folder of the program, or where it was
    /// installed.
    [[nodiscard]] static std::string usual_file();
    /// Loads a library and compares its interface. Takes milliseconds, and reads files. Errors:
    /// kSystem (cannot be loaded), kPermission (kOwned, and others may change the file), kVersion
    /// (another interface); why: a sentence with what to do.
    static Err load(const std::string& file, CoreFileRule rule,
                    std::shared_ptr<const CoreLibrary>& out, std::string& why);
    ~CoreLibrary();
    CoreLibrary(const CoreLibrary&) = delete;
    CoreLibrary& operator=(const CoreLibrary&) = delete;

    [[nodiscard]] const CoreTable& table() const noexcept { return *table_; }

private:
    CoreLibrary(int fd, void* handle) noexcept : fd_(fd), handle_(handle) {}
    int fd_;  ///< open as long as the library is: the loader knows it by this number
    void* handle_;
    const CoreTable* table_ = nullptr;
};

/// A core that was made and makes no rounds: the next one, or the one before. It is destroyed on
/// the engine's thread, while that runs.
class IdleCore {
public:
    IdleCore() = default;
    ~IdleCore() { destroy(); }
    IdleCore(const IdleCore&) = delete;
    IdleCore& operator=(const IdleCore&) = delete;
    void destroy() noexcept;
    /// Leaves its memory: the engine's thread does not come round.
    void abandon() noexcept { object_ = nullptr; }
    [[nodiscard]] bool made() const noexcept { return object_ != nullptr; }

private:
    friend class Core;
    std::shared_ptr<const CoreLibrary> library_;
    CoreObject* object_ = nullptr;
};

/// Figures of an upgrade, for the answer.
struct UpgradeFigures {
    Nanos load = 0;
    Nanos create = 0;
    Nanos exporting = 0;
    Nanos importing = 0;
    Nanos switching = 0;
    Nanos blackout = 0;
    std::uint64_t octets = 0;
    std::uint32_t frames = 0;
    std::uint32_t tries = 0;
    std::uint32_t endpoints = 0;
};

/// The core that runs. Calls as those of engine::Engine.
class Core {
public:
    /// Errors: kNoMemory. config.counters is set; ports and counters outlive the core.
    static Err create(std::shared_ptr<const CoreLibrary> library,
                      const engine::EngineConfig& config, std::span<const Port> ports,
                      std::unique_ptr<Core>& out);
    ~Core();
    Core(const Core&) = delete;
    Core& operator=(const Core&) = delete;

    // --- as engine.h has them
#define ULC_CORE_CALL(name)                         \
    template <typename... Arguments>                \
    auto name(Arguments... arguments) {             \
        return table_->name(object_, arguments...); \
    }
#define ULC_CORE_ASK(name) \
    [[nodiscard]] auto name() const { return table_->name(object_); }
#include "main/core/core_calls.def"
#undef ULC_CORE_ASK
#undef ULC_CORE_CALL

    // --- clients
    [[nodiscard]] Result<engine::EndpointId> reserve(std::uint32_t net,
                                                     const engine::Claimant& claimant,
                                                     std::string& why);
    Err admit(engine::EndpointId endpoint, void* region, const abi::RegionLayout& layout,
              const engine::Interrupt& interrupt);
    void detach(engine::EndpointId endpoint, engine::DetachReason reason, Nanos now);
    /// Forgets the region if so.
    [[nodiscard]] bool detached(engine::EndpointId endpoint);
    std::size_t take_figures(std::span<abi::EndpointRow> out) const {
        return table_->take_figures(object_, out.data(), out.size());
    }
    std::size_t take_streams(std::span<abi::StreamRow> out, const engine::UserId* uid) const {
        return table_->take_streams(object_, out.data(), out.size(), uid);
    }
    [[nodiscard]] std::span<const CoreRegion> regions() const noexcept { return regions_; }

    // --- upgrade; between two rounds
    /// Makes a core of the library with the same configuration and ports. Errors: kNoMemory.
    Err make_next(std::shared_ptr<const CoreLibrary> library, IdleCore& out) const;
    /// Exports, imports and switches. `next` is the core before then, or, after kRefused, one that
    /// can only be destroyed. why: what is in the way, or what to do. Gives up if it takes longer
    /// than blackout_max, which is looked at after each step.
    CoreExport replace_by(IdleCore& next, Nanos blackout_max, UpgradeFigures& figures,
                          std::string& why);
    /// Ends the clients that are in the way of an upgrade. Returns their names.
    std::string evict(Nanos now);

    [[nodiscard]] Counters& counters() noexcept { return *config_.counters; }

private:
    Core(std::shared_ptr<const CoreLibrary> library, const engine::EngineConfig& config,
         std::span<const Port> ports);
    void forget_region(engine::EndpointId endpoint);

    const CoreTable* table_;
    CoreObject* object_;
    std::shared_ptr<const CoreLibrary> library_;
    engine::EngineConfig config_;
    std::vector<Port> ports_;
    std::vector<CoreRegion> regions_;
};

}  // namespace ulc::daemon

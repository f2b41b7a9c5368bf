// SPDX-License-Identifier: BSD-3-Clause
// Replaces the core of a running engine (docs/design/UPGRADE.md), on a thread that lives as long as
// one upgrade. The library is loaded while the old core makes rounds; export, import and switch are
// one call between two rounds.
//
//   socket ── UpgradeRequest ──▶ load ─▶ make ─▶ [export ─▶ import ─▶ switch] ─▶ destroy the old
//          ◀── UpgradeAnswer ─── the first refusal ends it; the core that ran goes on
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "abi/attach.h"
#include "base/units.h"
#include "main/core/core.h"
#include "main/service/limited_thread.h"

namespace ulc::daemon {

class EngineLoop;

class Upgrader {
public:
    explicit Upgrader(EngineLoop& loop) noexcept : loop_(loop) {}
    ~Upgrader() { (void)stop(); }
    Upgrader(const Upgrader&) = delete;
    Upgrader& operator=(const Upgrader&) = delete;

    /// Begins an upgrade for the client of this socket, which stays the caller's. False: another
    /// one is under way, or no thread or descriptor is left; why: what to do. One thread.
    bool begin(int socket, std::string& why);
    /// Waits for the end of the one that is under way. False: it does not end, and uses this
    /// object.
    [[nodiscard]] bool stop();

private:
    void thread();
    Err upgrade(const std::string& file, bool evicts, UpgradeFigures& figures, std::string& build,
                std::string& why);
    /// Work of the engine's thread, which owns it too while a call needs it.
    struct Attempt {
        IdleCore next;
        UpgradeFigures figures;
        std::string why;
        CoreExport result = CoreExport::kRefused;
    };
    Err make(const std::shared_ptr<Attempt>& attempt, std::shared_ptr<const CoreLibrary> library);
    Err replace(const std::shared_ptr<Attempt>& attempt, bool evicts, std::string& why);
    void discard(const std::shared_ptr<Attempt>& attempt);

    EngineLoop& loop_;
    int socket_ = -1;  ///< where the answer of the upgrade under way goes
    std::atomic<bool> busy_{false};
    std::atomic<bool> stopping_{false};
    LimitedThread thread_;
};

}  // namespace ulc::daemon

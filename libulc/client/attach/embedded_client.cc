// SPDX-License-Identifier: BSD-3-Clause
#include "client/attach/embedded_client.h"

#include <dlfcn.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <new>
#include <string>

#include "abi/engine_entry.h"
#include "client/attach/fork_guard.h"
#include "client/attach/waiting.h"
#include "client/error_text.h"

namespace ulc::client {
namespace {

constexpr char kLibraryName[] = "libulc-engine.so.0";

/// The engine and one endpoint of it: the context of the endpoint's hooks.
struct Link {
    const abi::EngineEntry* entry = nullptr;
    abi::EmbeddedEngine* engine = nullptr;
    std::uint32_t endpoint = 0;
    abi::Placer placer;
    ulc_endpoint* object = nullptr;
    bool forked = false;
    pid_t thread = 0;  ///< which the engine interrupts
    ForkGuard guard{in_child, this};

    /// The engine belongs to the parent; its library forgets it in the child too.
    static void in_child(void* context) noexcept {
        auto* link = static_cast<Link*>(context);
        link->forked = true;
        if (link->object != nullptr) link->object->abandon();
    }
};

int run_round(void* context) noexcept {
    auto* link = static_cast<Link*>(context);
    const abi::Placer* placer =
        link->object->messages().inbox().may_place() ? &link->placer : nullptr;
    return link->entry->poll(link->engine, link->endpoint, placer);
}

/// Called by the thread that runs the engine's round.
void interrupt_thread(void* context) {
    static_cast<void>(
        syscall(SYS_tgkill, getpid(), static_cast<Link*>(context)->thread, kUpcallSignal));
}

int interrupts(void* context, bool on) noexcept {
    auto* link = static_cast<Link*>(context);
    if (on) link->thread = gettid();
    return link->entry->set_interrupt(link->engine, link->endpoint, on ? interrupt_thread : nullptr,
                                      link);
}

int lend_frames(void* context, bool lend) noexcept {
    auto* link = static_cast<Link*>(context);
    return link->entry->lend_frames(link->engine, link->endpoint, lend ? 1 : 0);
}

int forget_place(void* context, std::uint16_t source, const abi::Place& place) noexcept {
    auto* link = static_cast<Link*>(context);
    return link->entry->forget_place(link->engine, link->endpoint, source, &place);
}

int addresses(void* context, char* text, std::uint32_t octets) {
    auto* link = static_cast<Link*>(context);
    return link->entry->addresses(link->engine, text, octets);
}

int meet(void* context, const char* addresses) {
    auto* link = static_cast<Link*>(context);
    return link->entry->meet(link->engine, addresses);
}

int seal(void* context, const unsigned char* nonce) {
    auto* link = static_cast<Link*>(context);
    return link->entry->seal(link->engine, nonce);
}

void computes(void* context, bool begins) noexcept {
    auto* link = static_cast<Link*>(context);
    link->entry->computes(link->engine, begins ? 1 : 0);
}

void close_link(void* context) noexcept {
    auto* link = static_cast<Link*>(context);
    if (!link->forked) {
        static_cast<void>(link->entry->detach(link->engine, link->endpoint));
        link->entry->close(link->engine);
    }
    delete link;
}

std::string beside_libulc() {
    Dl_info here{};
    if (dladdr(reinterpret_cast<void*>(&close_link), &here) == 0 || here.dli_fname == nullptr)
        return {};
    const std::string path = here.dli_fname;
    const auto slash = path.rfind('/');
    return slash == std::string::npos ? std::string() : path.substr(0, slash + 1) + kLibraryName;
}

void* load_library() {
    if (const char* given = std::getenv("ULC_ENGINE_LIB")) {  // NOLINT(concurrency-mt-unsafe)
        void* library = dlopen(given, RTLD_NOW | RTLD_LOCAL);
        if (library == nullptr) set_last_error("ULC_ENGINE_LIB: %s", dlerror());
        return library;
    }
    const std::string beside = beside_libulc();
    if (!beside.empty())
        if (void* library = dlopen(beside.c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
    void* library = dlopen(kLibraryName, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr)
        set_last_error(
            "an embedded engine needs libulc-engine.so: %s; install it next to libulc.so "
            "or set ULC_ENGINE_LIB",
            dlerror());
    return library;
}

const abi::EngineEntry* entry_of(void* library) {
    auto* get = reinterpret_cast<abi::EngineEntryFn>(dlsym(library, abi::kEngineEntryName));
    const abi::EngineEntry* entry = get == nullptr ? nullptr : get(abi::kAbiVersion);
    if (entry == nullptr || entry->abi_version != abi::kAbiVersion ||
        entry->entry_octets != sizeof(abi::EngineEntry)) {
        set_last_error(
            "libulc.so and libulc-engine.so are of different versions; install both of "
            "one build");
        return nullptr;
    }
    return entry;
}

Err known(int status) {
    const auto error = static_cast<Err>(status);
    return text_of(error) == "unknown error" ? Err::kSystem : error;
}

}  // namespace

Result<std::unique_ptr<ulc_endpoint>> attach_embedded(const char* devices, const char* net,
                                                      const Limits& limits) {
    // Never unloaded: DPDK cannot be initialised twice in one process.
    void* library = load_library();
    if (library == nullptr) return Err::kNoEngine;
    std::unique_ptr<Link> link(new (std::nothrow) Link);
    if (!link) return Err::kNoMemory;
    link->entry = entry_of(library);
    if (link->entry == nullptr) return Err::kVersion;

    const char* options = std::getenv("ULC_ENGINE_OPTIONS");  // NOLINT(concurrency-mt-unsafe)
    std::string given = options == nullptr ? "" : options;
    if (limits.offload != 0 && given.find("--tx-arena") == std::string::npos)
        given += " --tx-arena " + std::to_string(kOffloadArenaOctets);
    char text[abi::kTextOctetsMax] = "";
    int status = link->entry->open(devices, given.c_str(), &link->engine, text, sizeof text);
    if (status != 0) {
        set_last_error("embedded engine on %s: %s", devices, text);
        return known(status);
    }
    void* memory = nullptr;
    abi::RegionLayout layout{};
    status = link->entry->attach(link->engine, net, &memory, &layout, &link->endpoint);
    Hooks hooks;
    std::unique_ptr<ulc_endpoint> endpoint;
    if (status == 0) {
        hooks.context = link.get();
        hooks.progress = run_round;
        hooks.sleep = futex_sleep;
        hooks.yield = yield_core;
        hooks.interrupts = interrupts;
        hooks.lend_frames = lend_frames;
        hooks.forget_place = forget_place;
        hooks.addresses = addresses;
        hooks.meet = meet;
        hooks.seal = seal;
        hooks.computes = computes;
        hooks.now = monotonic_now;
        hooks.close = close_link;
        endpoint = make_endpoint(abi::Region(memory, layout, abi::Reach::kProcess), hooks, limits);
        if (endpoint) {
            link->placer = endpoint->placer();
            link->object = endpoint.get();
            static_cast<void>(link.release());
            return endpoint;
        }
        static_cast<void>(link->entry->detach(link->engine, link->endpoint));
        status = static_cast<int>(Err::kNoMemory);
    }
    link->entry->close(link->engine);
    if (known(status) == Err::kInvalid) {
        set_last_error("embedded engine on %s: no net is called %s", devices, net);
    } else {
        set_last_error("embedded engine on %s: no endpoint: %s", devices,
                       text_of(known(status)).data());
    }
    return known(status);
}

}  // namespace ulc::client

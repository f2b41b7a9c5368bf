// SPDX-License-Identifier: BSD-3-Clause
// Two ranks of `ulc run` that speak libfabric's API with the provider of this build. Each program
// that includes this file is one.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>

namespace ulc::test {

/// Progress without the application's calls.
inline bool automatic = false;
/// Capabilities that a program wants in addition.
inline std::uint64_t more_caps = 0;
inline int memory_mode = 0;
inline int failures = 0;
inline int rank = 0;

#define CHECK(condition)                                                                 \
    do {                                                                                 \
        if (!(condition)) {                                                              \
            ++failures;                                                                  \
            std::printf("rank %d, line %d: not true: %s\n", rank, __LINE__, #condition); \
        }                                                                                \
    } while (false)

/// Ends the program if a call failed without which nothing else makes sense.
#define NEED(call)                                                           \
    do {                                                                     \
        if (const auto error = (call); error != 0) {                         \
            std::printf("rank %d, line %d: %s: %s\n", rank, __LINE__, #call, \
                        fi_strerror(static_cast<int>(-error)));              \
            std::exit(1);                                                    \
        }                                                                    \
    } while (false)

using Clock = std::chrono::steady_clock;
inline Clock::time_point deadline = Clock::now() + std::chrono::seconds(60);

inline void check_time(int line) {
    if (Clock::now() < deadline) return;
    std::printf("rank %d, line %d: waited too long\n", rank, line);
    std::exit(1);
}

inline struct Fabric {
    fi_info* info = nullptr;
    fid_fabric* fabric = nullptr;
    fid_domain* domain = nullptr;
    fid_av* addresses = nullptr;
    fid_cq* queue = nullptr;
    fid_cntr* sent = nullptr;
    fid_ep* ep = nullptr;
    fi_addr_t peer = FI_ADDR_UNSPEC;
    fi_addr_t self = FI_ADDR_UNSPEC;
} f;

using Entry = fi_cq_tagged_entry;

/// Waits for the next completion.
inline Entry next(fi_addr_t* source = nullptr) {
    for (;;) {
        Entry entry{};
        const ssize_t got = fi_cq_readfrom(f.queue, &entry, 1, source);
        if (got == 1) return entry;
        if (got != -FI_EAGAIN) {
            std::printf("rank %d: fi_cq_readfrom: %zd\n", rank, got);
            std::exit(1);
        }
        check_time(__LINE__);
    }
}

inline fi_cq_err_entry next_error() {
    for (;;) {
        Entry entry{};
        fi_cq_err_entry error{};
        const ssize_t got = fi_cq_read(f.queue, &entry, 1);
        if (got == -FI_EAVAIL && fi_cq_readerr(f.queue, &error, 0) == 1) return error;
        CHECK(got == -FI_EAGAIN);
        check_time(__LINE__);
    }
}

/// Repeats a call that has no memory for it now.
template <class Call>
void until_taken(Call call) {
    for (;;) {
        const ssize_t error = call();
        if (error == 0) return;
        if (error != -FI_EAGAIN) {
            std::printf("rank %d: %s\n", rank, fi_strerror(static_cast<int>(-error)));
            std::exit(1);
        }
        check_time(__LINE__);
    }
}

constexpr std::uint64_t kTagMax = (std::uint64_t{1} << 62) - 1;
constexpr std::uint64_t kMeet = 0x1234;

inline void post(void* buffer, std::size_t length, std::uint64_t tag, std::uint64_t ignore,
                 void* context, fi_addr_t from) {
    until_taken(
        [&] { return fi_trecv(f.ep, buffer, length, nullptr, from, tag, ignore, context); });
}
inline void inject(const std::string& text, std::uint64_t tag) {
    until_taken([&] { return fi_tinject(f.ep, text.data(), text.size(), f.peer, tag); });
}

/// Both ranks are here.
inline void meet() {
    char byte = 0;
    post(&byte, 1, kMeet, 0, &byte, f.peer);
    inject("m", kMeet);
    CHECK(next().op_context == &byte);
}

inline void open_endpoint() {
    fi_info* hints = fi_allocinfo();
    hints->fabric_attr->prov_name = ::strdup("ulc");
    hints->caps = FI_TAGGED | FI_MSG | FI_DIRECTED_RECV | FI_SOURCE | FI_MULTI_RECV | more_caps;
    hints->domain_attr->mr_mode = memory_mode;
    hints->domain_attr->threading = FI_THREAD_DOMAIN;
    hints->domain_attr->av_type = FI_AV_TABLE;
    if (automatic) hints->domain_attr->data_progress = FI_PROGRESS_AUTO;
    NEED(fi_getinfo(FI_VERSION(1, 17), nullptr, nullptr, 0, hints, &f.info));
    CHECK(f.info->domain_attr->threading == FI_THREAD_DOMAIN);
    CHECK(f.info->domain_attr->mr_mode == memory_mode);
    CHECK(more_caps != 0 || (f.info->caps & (FI_RMA | FI_ATOMIC)) == 0);
    CHECK(f.info->domain_attr->data_progress ==
          (automatic ? FI_PROGRESS_AUTO : FI_PROGRESS_MANUAL));
    fi_freeinfo(hints);
    NEED(fi_fabric(f.info->fabric_attr, &f.fabric, nullptr));
    NEED(fi_domain(f.fabric, f.info, &f.domain, nullptr));
    fi_av_attr av{};
    av.type = FI_AV_TABLE;
    NEED(fi_av_open(f.domain, &av, &f.addresses, nullptr));
    fi_cq_attr cq{};
    cq.format = FI_CQ_FORMAT_TAGGED;
    cq.wait_obj = FI_WAIT_FD;
    NEED(fi_cq_open(f.domain, &cq, &f.queue, nullptr));
    fi_cntr_attr counter{};
    NEED(fi_cntr_open(f.domain, &counter, &f.sent, nullptr));
    NEED(fi_endpoint(f.domain, f.info, &f.ep, nullptr));
    CHECK(fi_enable(f.ep) == -FI_ENOAV);
    NEED(fi_ep_bind(f.ep, &f.addresses->fid, 0));
    NEED(fi_ep_bind(f.ep, &f.queue->fid, FI_RECV));
    NEED(fi_ep_bind(f.ep, &f.queue->fid, FI_TRANSMIT | FI_SELECTIVE_COMPLETION));
    NEED(fi_ep_bind(f.ep, &f.sent->fid, FI_SEND));
    NEED(fi_enable(f.ep));
    CHECK(fi_close(&f.domain->fid) == -FI_EBUSY);
    static char bytes[100];
    fid_mr* memory = nullptr;
    NEED(fi_mr_reg(f.domain, bytes, sizeof bytes, FI_SEND | FI_RECV, 0, 5, 0, &memory, nullptr));
    CHECK(fi_mr_key(memory) == 5 && fi_close(&memory->fid) == 0);
}

inline void exchange_addresses(const std::string& folder) {
    std::string own(64, '\0');
    std::size_t length = own.size();
    NEED(fi_getname(&f.ep->fid, own.data(), &length));
    CHECK(length == 64);
    own.resize(length);
    const std::string mine = folder + "/" + std::to_string(rank);
    std::ofstream(mine + ".new", std::ios::binary) << own;
    std::rename((mine + ".new").c_str(), mine.c_str());
    std::string other;
    while (other.size() != length) {
        std::ifstream in(folder + "/" + std::to_string(1 - rank), std::ios::binary);
        other.assign(std::istreambuf_iterator<char>(in), {});
        check_time(__LINE__);
        ::usleep(1000);
    }
    CHECK(fi_av_insert(f.addresses, other.data(), 1, &f.peer, 0, nullptr) == 1);
    CHECK(fi_av_insert(f.addresses, own.data(), 1, &f.self, 0, nullptr) == 1);
    fi_addr_t none = 0;
    other[13] ^= 1;  // of another job, and no link leads there
    std::memset(other.data() + 32, 0, 32);
    CHECK(fi_av_insert(f.addresses, other.data(), 1, &none, 0, nullptr) == 0);
    CHECK(none == FI_ADDR_NOTAVAIL);
}

inline ssize_t look(std::uint64_t tag, std::uint64_t flags, void* buffer, std::size_t length,
                    void* context) {
    const iovec piece{buffer, length};
    const fi_msg_tagged message{&piece, nullptr, 1, f.peer, tag, 0, context, 0};
    return fi_trecvmsg(f.ep, &message, flags);
}

inline void close_endpoint() {
    CHECK(fi_close(&f.addresses->fid) == -FI_EBUSY);
    CHECK(fi_close(&f.ep->fid) == 0);
    CHECK(fi_close(&f.queue->fid) == 0);
    CHECK(fi_close(&f.sent->fid) == 0);
    CHECK(fi_close(&f.addresses->fid) == 0);
    CHECK(fi_close(&f.domain->fid) == 0);
    CHECK(fi_close(&f.fabric->fid) == 0);
    fi_freeinfo(f.info);
}

}  // namespace ulc::test

// SPDX-License-Identifier: BSD-3-Clause
// The path of libfabric's calls through the provider and libulc: a tagged message of 8 B that an
// endpoint sends to itself, with the engine in this thread. The instructions are the figure
// (bench/count_instructions); the engine's part is a round that finds nothing.
#include <benchmark/benchmark.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>
#include <ulc.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>
#include <tuple>

namespace ulc::bench {

using Clock = std::chrono::steady_clock;

/// One endpoint with a completion queue.
class Libfabric {
public:
    Libfabric() {
        fi_info* hints = fi_allocinfo();
        if (hints == nullptr) return;
        hints->caps = FI_TAGGED | FI_DIRECTED_RECV | FI_SOURCE;
        hints->ep_attr->type = FI_EP_RDM;
        hints->domain_attr->threading = FI_THREAD_DOMAIN;
        fi_av_attr av{};
        av.type = FI_AV_MAP;
        fi_cq_attr cq{};
        cq.format = FI_CQ_FORMAT_TAGGED;
        unsigned char name[64];
        std::size_t length = sizeof name;
        works_ = fi_getinfo(FI_VERSION(1, 17), nullptr, nullptr, 0, hints, &info_) == 0 &&
                 fi_fabric(info_->fabric_attr, &fabric_, nullptr) == 0 &&
                 fi_domain(fabric_, info_, &domain_, nullptr) == 0 &&
                 fi_av_open(domain_, &av, &addresses_, nullptr) == 0 &&
                 fi_cq_open(domain_, &cq, &queue_, nullptr) == 0 &&
                 fi_endpoint(domain_, info_, &ep_, nullptr) == 0 &&
                 fi_ep_bind(ep_, &addresses_->fid, 0) == 0 &&
                 fi_ep_bind(ep_, &queue_->fid, FI_RECV | FI_TRANSMIT) == 0 && fi_enable(ep_) == 0 &&
                 fi_getname(&ep_->fid, name, &length) == 0 &&
                 fi_av_insert(addresses_, name, 1, &self_, 0, nullptr) == 1 && form();
        fi_freeinfo(hints);
    }
    ~Libfabric() {
        if (ep_ != nullptr) fi_close(&ep_->fid);
        if (queue_ != nullptr) fi_close(&queue_->fid);
        if (addresses_ != nullptr) fi_close(&addresses_->fid);
        if (domain_ != nullptr) fi_close(&domain_->fid);
        if (fabric_ != nullptr) fi_close(&fabric_->fid);
        if (info_ != nullptr) fi_freeinfo(info_);
        if (other_ != nullptr) ulc_close(other_);
    }
    Libfabric(const Libfabric&) = delete;
    Libfabric& operator=(const Libfabric&) = delete;
    [[nodiscard]] bool works() const { return works_; }

    /// Receives, sends and takes both completions. False: not all of it within 10 s.
    [[gnu::noinline]] bool move(std::uint64_t number) {
        std::uint64_t in = 0;
        if (fi_trecv(ep_, &in, sizeof in, nullptr, self_, 5, 0, &in) != 0 ||
            fi_tsend(ep_, &number, sizeof number, nullptr, self_, 5, nullptr) != 0)
            return false;
        unsigned empty = 0;
        for (int left = 2; left > 0;) {
            fi_cq_tagged_entry entries[2];
            const ssize_t got = fi_cq_read(queue_, entries, 2);
            if (got > 0) {
                left -= static_cast<int>(got);
            } else if (got != -FI_EAGAIN || ++empty > 10'000'000) {
                return false;
            }
        }
        return in == number;
    }

private:
    /// Joins as the second rank, without which there is no job.
    [[nodiscard]] bool form() {
        if (ulc_open(nullptr, &other_) != ULC_OK ||
            ulc_join(other_, "provider.ofi.0", 1, 2, nullptr) != ULC_OK)
            return false;
        const auto limit = Clock::now() + std::chrono::seconds(10);
        int state = ULC_ERR_AGAIN;
        while (state == ULC_ERR_AGAIN && Clock::now() < limit) {
            fi_cq_tagged_entry unused;
            std::ignore = ulc_poll(other_);
            std::ignore = fi_cq_read(queue_, &unused, 1);
            state = ulc_job_state(other_);
        }
        return state == ULC_OK;
    }

    fi_info* info_ = nullptr;
    fid_fabric* fabric_ = nullptr;
    fid_domain* domain_ = nullptr;
    fid_av* addresses_ = nullptr;
    fid_cq* queue_ = nullptr;
    fid_ep* ep_ = nullptr;
    ulc_endpoint* other_ = nullptr;
    fi_addr_t self_ = 0;
    bool works_ = false;
};

}  // namespace ulc::bench

namespace {

void to_itself(benchmark::State& state) {
    ulc::bench::Libfabric libfabric;
    std::uint64_t number = 0;
    if (!libfabric.works() || !libfabric.move(++number))  // the job forms
        return state.SkipWithError("the endpoint does not start");
    for (auto _ : state) {
        if (libfabric.move(++number)) continue;
        state.SkipWithError("a message was lost or wrong");
        break;
    }
}

}  // namespace

int main(int argc, char** argv) {
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
    const char* count = std::getenv("ULC_BENCH_ITERATIONS");
    std::error_code error;
    const auto build =
        std::filesystem::read_symlink("/proc/self/exe", error).parent_path().parent_path();
    const auto library = build / "pmd_app" / "main" / "libulc-engine.so.0";
    if (std::filesystem::exists(library, error)) {
        ::setenv("ULC_ENGINE_LIB", library.c_str(), 0);
        ::setenv("FI_PROVIDER_PATH", (build / "libulc" / "ofi").c_str(), 0);
    }
    ::setenv("FI_PROVIDER", "ulc", 1);
    char folder[] = "/tmp/ulc-bench-XXXXXX";
    if (::mkdtemp(folder) == nullptr) return 1;
    // A wire without another station.
    const std::string wire = std::string(folder) + "/wire";
    ::setenv("ULC_ENGINE", ("embedded:shm,stations=2,station=0,path=" + wire).c_str(), 1);
    ::setenv("ULC_ENGINE_OPTIONS", "--hugepages never", 0);
    ::setenv("ULC_JOB", "provider", 1);
    ::setenv("ULC_RANK", "0", 1);
    ::setenv("ULC_SIZE", "2", 1);
    benchmark::RegisterBenchmark("to_itself/8", to_itself)
        ->Iterations(count != nullptr ? std::atoi(count) : 10'000);
    benchmark::RunSpecifiedBenchmarks();
    std::filesystem::remove_all(folder, error);
    return 0;
}

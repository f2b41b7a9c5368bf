// SPDX-License-Identifier: BSD-3-Clause
// Transport over libulc's public API.
#include <coll.h>
#include <ulc.h>

#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

#include "bench/common/job.h"
#include "bench/common/transport.h"

namespace ulc::bench {
namespace {

constexpr std::uint64_t kTagPing = 1;
constexpr std::uint64_t kTagStream = 2;
constexpr std::uint64_t kTagExchange = 3;
constexpr std::uint64_t kTagAll = UINT64_MAX;

class UlcTransport final : public Transport {
public:
    explicit UlcTransport(std::unique_ptr<Job> job) : job_(std::move(job)), ep_(job_->endpoint()) {
        const char* engine = std::getenv("ULC_ENGINE");  // NOLINT(concurrency-mt-unsafe): read only
        const bool embedded =
            engine != nullptr && std::string_view(engine).starts_with("embedded:");
        name_ = embedded ? "ulc/embedded" : "ulc/daemon";
    }

    [[nodiscard]] const std::string& name() const override { return name_; }
    [[nodiscard]] std::uint16_t rank() const override { return job_->rank(); }
    [[nodiscard]] std::uint16_t size() const override { return job_->size(); }
    [[nodiscard]] bool has_algorithms() const override { return true; }

    void round_trip(std::uint16_t peer, const void* out, void* in, std::size_t octets) override {
        ulc_request receive;
        ulc_request send;
        require(ulc_receive(ep_, peer, kTagPing, kTagAll, in, octets, &receive), "receive");
        require(ulc_send(ep_, peer, kTagPing, out, octets, &send), "send");
        wait(receive, "receive");
        wait(send, "send");
    }

    void echo(std::uint16_t peer, void* buffer, std::size_t octets) override {
        receive(peer, buffer, octets);
        send(peer, buffer, octets);
    }

    void send(std::uint16_t peer, const void* payload, std::size_t octets) override {
        ulc_request request;
        require(ulc_send(ep_, peer, kTagPing, payload, octets, &request), "send");
        wait(request, "send");
        // Short payloads are copied at once; an engine inside this process sends them when it is
        // polled.
        if (const int events = ulc_poll(ep_); events < 0) require(-events, "poll");
    }
    void receive(std::uint16_t peer, void* buffer, std::size_t octets) override {
        ulc_request request;
        require(ulc_receive(ep_, peer, kTagPing, kTagAll, buffer, octets, &request), "receive");
        wait(request, "receive");
    }

    void stream_out(std::uint16_t peer, const void* payload, std::size_t octets,
                    unsigned count) override {
        ulc_request requests[kStreamWindow];
        for (unsigned i = 0; i < count; ++i) {
            ulc_request& request = requests[i % kStreamWindow];
            if (i >= kStreamWindow) wait(request, "send");
            require(ulc_send(ep_, peer, kTagStream, payload, octets, &request), "send");
        }
        const unsigned open = count < kStreamWindow ? count : kStreamWindow;
        for (unsigned i = count - open; i < count; ++i)
            wait(requests[i % kStreamWindow], "send");
    }

    bool stream_in(std::uint16_t peer, void* memory, const void* expected, std::size_t octets,
                   unsigned count) override {
        ulc_request requests[kStreamWindow];
        const auto place = [&](unsigned i) {
            return static_cast<unsigned char*>(memory) + (i % kStreamWindow) * octets;
        };
        const auto post = [&](unsigned i) {
            require(ulc_receive(ep_, peer, kTagStream, kTagAll, place(i), octets,
                                &requests[i % kStreamWindow]),
                    "receive");
        };
        for (unsigned i = 0; i < count && i < kStreamWindow; ++i)
            post(i);
        bool right = true;
        for (unsigned i = 0; i < count; ++i) {
            wait(requests[i % kStreamWindow], "receive");
            right = std::memcmp(place(i), expected, octets) == 0 && right;
            if (i + kStreamWindow < count) post(i + kStreamWindow);
        }
        return right;
    }

    void exchange(std::span<const std::uint16_t> order, const unsigned char* out, unsigned char* in,
                  std::size_t octets) override {
        std::vector<ulc_request> receives(order.size());
        std::vector<ulc_request> sends(order.size());
        for (std::size_t i = 0; i < order.size(); ++i)
            require(ulc_receive(ep_, order[i], kTagExchange, kTagAll, in + order[i] * octets,
                                octets, &receives[i]),
                    "receive");
        for (std::size_t i = 0; i < order.size(); ++i)
            require(
                ulc_send(ep_, order[i], kTagExchange, out + order[i] * octets, octets, &sends[i]),
                "send");
        for (ulc_request& one : receives)
            wait(one, "receive");
        for (ulc_request& one : sends)
            wait(one, "send");
    }

    void barrier(const char* algorithm) override {
        collective("barrier", ulc_barrier_start, algorithm);
    }
    void broadcast(std::uint16_t root, void* buffer, std::size_t octets,
                   const char* algorithm) override {
        collective("broadcast", ulc_broadcast_start, algorithm, root, buffer, octets);
    }
    void allgather(const void* input, void* output, std::size_t octets,
                   const char* algorithm) override {
        collective("allgather", ulc_allgather_start, algorithm, input, output, octets);
    }
    void gather(std::uint16_t root, const void* input, void* output, std::size_t octets,
                const char* algorithm) override {
        collective("gather", ulc_gather_start, algorithm, root, input, output, octets);
    }
    void scatter(std::uint16_t root, const void* input, void* output, std::size_t octets,
                 const char* algorithm) override {
        collective("scatter", ulc_scatter_start, algorithm, root, input, output, octets);
    }
    void alltoall(const void* input, void* output, std::size_t octets,
                  const char* algorithm) override {
        collective("alltoall", ulc_alltoall_start, algorithm, input, output, octets);
    }
    void reduce(std::uint16_t root, const double* input, double* output, std::size_t count,
                const char* algorithm) override {
        collective("reduce", ulc_reduce_start, algorithm, root, input, output, count, kSum);
    }
    void allreduce(const double* input, double* output, std::size_t count,
                   const char* algorithm) override {
        collective("allreduce", ulc_allreduce_start, algorithm, input, output, count, kSum);
    }
    void reduce_scatter(const double* input, double* output, std::size_t count,
                        const char* algorithm) override {
        collective("reduce_scatter", ulc_reduce_scatter_block_start, algorithm, input, output,
                   count, kSum);
    }
    void scan(const double* input, double* output, std::size_t count,
              const char* algorithm) override {
        collective("scan", ulc_scan_start, algorithm, input, output, count, kSum);
    }
    void exscan(const double* input, double* output, std::size_t count,
                const char* algorithm) override {
        collective("exscan", ulc_exscan_start, algorithm, input, output, count, kSum);
    }

private:
    static constexpr ulc_reduction kSum{ULC_DOUBLE, ULC_SUM};

    template <typename Start, typename... Given>
    void collective(const char* what, Start start, const char* algorithm, Given... given) {
        ulc_coll* operation = nullptr;
        require(start(ep_, job_->world(), given..., algorithm, &operation), what);
        require(ulc_coll_wait(ep_, operation, ULC_WAIT_FOREVER), what);
    }
    void wait(ulc_request& request, const char* what) {
        ulc_status status;
        require(ulc_wait_for(ep_, &request, &status, ULC_WAIT_FOREVER), what);
        require(status.error, what);
    }

    std::unique_ptr<Job> job_;
    ulc_endpoint* ep_;
    std::string name_;
};

}  // namespace

std::unique_ptr<Transport> make_transport(int&, char**&, std::string& why) {
    std::unique_ptr<Job> job = Job::join(why);
    if (job == nullptr) return nullptr;
    if (job->alone()) {
        why = "start it on several ranks: ulc run -n 2 <this program>";
        return nullptr;
    }
    return std::make_unique<UlcTransport>(std::move(job));
}

}  // namespace ulc::bench

// SPDX-License-Identifier: BSD-3-Clause
// The same benchmarks over MPI, as a reference: mpirun -np 2 --mca btl tcp,self
// ulc-bench-latency-mpi.
#define OMPI_SKIP_MPICXX  // the C API only
#define MPICH_SKIP_MPICXX
#include <mpi.h>

#include <cstring>
#include <vector>

#include "bench/common/transport.h"

namespace ulc::bench {
namespace {

constexpr int kTagPing = 1;
constexpr int kTagStream = 2;
constexpr int kTagExchange = 3;

class MpiTransport final : public Transport {
public:
    MpiTransport() {
        int value = 0;
        MPI_Comm_rank(MPI_COMM_WORLD, &value);
        rank_ = static_cast<std::uint16_t>(value);
        MPI_Comm_size(MPI_COMM_WORLD, &value);
        size_ = static_cast<std::uint16_t>(value);
    }
    ~MpiTransport() override { MPI_Finalize(); }

    [[nodiscard]] const std::string& name() const override { return name_; }
    [[nodiscard]] std::uint16_t rank() const override { return rank_; }
    [[nodiscard]] std::uint16_t size() const override { return size_; }
    [[nodiscard]] bool has_algorithms() const override { return false; }

    void round_trip(std::uint16_t peer, const void* out, void* in, std::size_t octets) override {
        MPI_Request receive;
        MPI_Irecv(in, count_of(octets), MPI_BYTE, peer, kTagPing, MPI_COMM_WORLD, &receive);
        MPI_Send(out, count_of(octets), MPI_BYTE, peer, kTagPing, MPI_COMM_WORLD);
        MPI_Wait(&receive, MPI_STATUS_IGNORE);
    }
    void echo(std::uint16_t peer, void* buffer, std::size_t octets) override {
        receive(peer, buffer, octets);
        send(peer, buffer, octets);
    }

    void send(std::uint16_t peer, const void* payload, std::size_t octets) override {
        MPI_Send(payload, count_of(octets), MPI_BYTE, peer, kTagPing, MPI_COMM_WORLD);
    }
    void receive(std::uint16_t peer, void* buffer, std::size_t octets) override {
        MPI_Recv(buffer, count_of(octets), MPI_BYTE, peer, kTagPing, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    }

    void stream_out(std::uint16_t peer, const void* payload, std::size_t octets,
                    unsigned count) override {
        std::vector<MPI_Request> requests(kStreamWindow, MPI_REQUEST_NULL);
        for (unsigned i = 0; i < count; ++i) {
            MPI_Request& request = requests[i % kStreamWindow];
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            MPI_Isend(payload, count_of(octets), MPI_BYTE, peer, kTagStream, MPI_COMM_WORLD,
                      &request);
        }
        MPI_Waitall(kStreamWindow, requests.data(), MPI_STATUSES_IGNORE);
    }
    bool stream_in(std::uint16_t peer, void* memory, const void* expected, std::size_t octets,
                   unsigned count) override {
        std::vector<MPI_Request> requests(kStreamWindow, MPI_REQUEST_NULL);
        const auto place = [&](unsigned i) {
            return static_cast<unsigned char*>(memory) + (i % kStreamWindow) * octets;
        };
        const auto post = [&](unsigned i) {
            MPI_Irecv(place(i), count_of(octets), MPI_BYTE, peer, kTagStream, MPI_COMM_WORLD,
                      &requests[i % kStreamWindow]);
        };
        for (unsigned i = 0; i < count && i < kStreamWindow; ++i)
            post(i);
        bool right = true;
        for (unsigned i = 0; i < count; ++i) {
            MPI_Wait(&requests[i % kStreamWindow], MPI_STATUS_IGNORE);
            right = std::memcmp(place(i), expected, octets) == 0 && right;
            if (i + kStreamWindow < count) post(i + kStreamWindow);
        }
        return right;
    }

    void exchange(std::span<const std::uint16_t> order, const unsigned char* out, unsigned char* in,
                  std::size_t octets) override {
        std::vector<MPI_Request> requests;
        for (const std::uint16_t peer : order)
            MPI_Irecv(in + peer * octets, count_of(octets), MPI_BYTE, peer, kTagExchange,
                      MPI_COMM_WORLD, &requests.emplace_back());
        for (const std::uint16_t peer : order)
            MPI_Isend(out + peer * octets, count_of(octets), MPI_BYTE, peer, kTagExchange,
                      MPI_COMM_WORLD, &requests.emplace_back());
        MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
    }

    void barrier(const char*) override { MPI_Barrier(MPI_COMM_WORLD); }
    void broadcast(std::uint16_t root, void* buffer, std::size_t octets, const char*) override {
        MPI_Bcast(buffer, count_of(octets), MPI_BYTE, root, MPI_COMM_WORLD);
    }
    void allgather(const void* input, void* output, std::size_t octets, const char*) override {
        MPI_Allgather(input, count_of(octets), MPI_BYTE, output, count_of(octets), MPI_BYTE,
                      MPI_COMM_WORLD);
    }

    void gather(std::uint16_t root, const void* input, void* output, std::size_t octets,
                const char*) override {
        MPI_Gather(input, count_of(octets), MPI_BYTE, output, count_of(octets), MPI_BYTE, root,
                   MPI_COMM_WORLD);
    }
    void scatter(std::uint16_t root, const void* input, void* output, std::size_t octets,
                 const char*) override {
        MPI_Scatter(input, count_of(octets), MPI_BYTE, output, count_of(octets), MPI_BYTE, root,
                    MPI_COMM_WORLD);
    }
    void alltoall(const void* input, void* output, std::size_t octets, const char*) override {
        MPI_Alltoall(input, count_of(octets), MPI_BYTE, output, count_of(octets), MPI_BYTE,
                     MPI_COMM_WORLD);
    }
    void reduce(std::uint16_t root, const double* input, double* output, std::size_t count,
                const char*) override {
        MPI_Reduce(input, output, count_of(count), MPI_DOUBLE, MPI_SUM, root, MPI_COMM_WORLD);
    }
    void allreduce(const double* input, double* output, std::size_t count, const char*) override {
        MPI_Allreduce(input, output, count_of(count), MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    }
    void reduce_scatter(const double* input, double* output, std::size_t count,
                        const char*) override {
        MPI_Reduce_scatter_block(input, output, count_of(count), MPI_DOUBLE, MPI_SUM,
                                 MPI_COMM_WORLD);
    }
    void scan(const double* input, double* output, std::size_t count, const char*) override {
        MPI_Scan(input, output, count_of(count), MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    }
    void exscan(const double* input, double* output, std::size_t count, const char*) override {
        MPI_Exscan(input, output, count_of(count), MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    }

private:
    static int count_of(std::size_t octets) { return static_cast<int>(octets); }

    std::string name_ = ULC_MPI_NAME;  // of the build: "mpi" is Open MPI, "mpich" is MPICH
    std::uint16_t rank_ = 0;
    std::uint16_t size_ = 0;
};

}  // namespace

std::unique_ptr<Transport> make_transport(int& argc, char**& argv, std::string& why) {
    if (MPI_Init(&argc, &argv) != MPI_SUCCESS) {
        why = "MPI_Init failed";
        return nullptr;
    }
    return std::make_unique<MpiTransport>();
}

}  // namespace ulc::bench

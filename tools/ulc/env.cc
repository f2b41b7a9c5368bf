// SPDX-License-Identifier: BSD-3-Clause
// ulc env: the variables with which an MPI of this machine finds the parts of ULC.
#include <fmt/format.h>

#include <filesystem>
#include <string>

#include "tools/shared/command_line.h"
#include "tools/ulc/commands.h"
#include "tools/ulc/programs.h"
#include "tools/ulc/run/mpi_host.h"

namespace ulc::tools {
namespace {

constexpr const char* kPathVariable = "OMPI_MCA_mca_base_component_path";
constexpr const char* kPmixPathVariable = "PMIX_MCA_mca_base_component_path";

int refuse(const std::string& text) {
    fmt::print(stderr, "ulc env: {}\n", text);
    return 1;
}

bool is_5(const OpenMpi& mpi) { return mpi.version.starts_with("5."); }

/// Prints what makes libfabric choose our provider.
void print_provider(const std::string& provider) {
    fmt::print("export FI_PROVIDER=ulc\nexport FI_PROVIDER_PATH='{}'\n",
               std::filesystem::path(provider).parent_path().string());
}

/// Prints what makes Open MPI send its messages by our provider for libfabric.
void print_messages_of_open_mpi(const std::string& provider, bool explain) {
    if (explain) {
        fmt::print(
            "# Messages between two ranks go by libfabric, and there by ULC. Debian's Open MPI\n"
            "# leaves libfabric out unless it is asked for. libfabric looks for the provider in\n"
            "# FI_PROVIDER_PATH.\n");
    }
    fmt::print("export OMPI_MCA_pml=cm\nexport OMPI_MCA_mtl=ofi\n");
    print_provider(provider);
}

/// Prints what makes an MPICH of device ch4:ofi send its messages by our provider. Intel MPI brings
/// another libfabric, which gives way to that of the system by a variable.
void print_messages_of_mpich(const std::string& provider, bool intel, bool explain) {
    if (explain) {
        fmt::print(
            "# Messages between two ranks go by libfabric, and there by ULC, if the MPI was built\n"
            "# for libfabric (mpichversion: ch4:ofi). Debian's was built for UCX (ch4:ucx), and "
            "its\n"
            "# messages stay there. libfabric looks for the provider in FI_PROVIDER_PATH.\n");
    }
    if (intel) fmt::print("export I_MPI_OFI_LIBRARY_INTERNAL=0\n");
    print_provider(provider);
}

/// Prints what makes Open MPI's windows write and read by our provider.
void print_one_sided(bool explain) {
    if (explain) {
        fmt::print(
            "# One-sided communication (MPI_Put and its like) goes by libfabric too. Each process\n"
            "# opens an endpoint for it in MPI_Init.\n");
    }
    fmt::print("export OMPI_MCA_btl=self,ofi\n");
}

/// Prints the same for Open MPI 5, whose windows find no libfabric below pml/cm.
void print_one_sided_of_5(const std::string& provider, bool explain) {
    if (explain) {
        fmt::print(
            "# One-sided communication (MPI_Put and its like) goes by libfabric, and there by\n"
            "# ULC. Open MPI 5 offers that to windows only if messages between two ranks do not,\n"
            "# so these go by shared memory and TCP. Each process opens an endpoint in "
            "MPI_Init.\n");
    }
    fmt::print("export OMPI_MCA_pml=ob1\nexport OMPI_MCA_btl=self,sm,tcp,ofi\n");
    print_provider(provider);
}

/// Prints what makes ranks under mpirun of Open MPI 5 look into that folder.
int print_path_of_5(const OpenMpi& mpi, const std::string& ours, bool explain) {
    const std::string of_pmix = find_pmix_components();
    if (of_pmix.empty())
        return refuse(
            "there is no folder of components next to libpmix.so.2, which ldconfig names");
    if (explain) {
        fmt::print(
            "# mpirun gives ranks the folder of PMIx's components, and they look for Open MPI's\n"
            "# there alone. So each gets its own by name: {} has mca_coll_ulc.so.\n",
            ours);
    }
    const bool is_same = mpi.folder == ours || !std::filesystem::is_directory(mpi.folder);
    fmt::print("export {}='{}{}'\nexport {}='{}'\n", kPathVariable, ours,
               is_same ? "" : ":" + mpi.folder, kPmixPathVariable, of_pmix);
    return 0;
}

/// Prints what makes Open MPI load our collectives; returns the exit code.
int print_component(const OpenMpi& mpi, bool explain) {
    if (const std::string misfit = misfit_of(mpi); !misfit.empty()) return refuse(misfit);
    if (mpi.loads_us && !is_5(mpi)) {
        if (explain) fmt::print("# no more to set: {} loads mca_coll_ulc.so already\n", mpi.mpirun);
        return 0;
    }
    if (!mpi.why_not.empty())
        return refuse("Open MPI finds mca_coll_ulc.so and cannot load it: " + mpi.why_not);
    const std::string ours = find_component_folder(mpi);
    if (ours.empty())
        return refuse("mca_coll_ulc.so is not built; run tools/setup test and build again");
    if (is_5(mpi)) return print_path_of_5(mpi, ours, explain);
    if (explain) {
        fmt::print(
            "# Folders where Open MPI looks for components: first ours, which is not installed,\n"
            "# then {} and ~/.openmpi/components.\n",
            mpi.folder);
    }
    fmt::print("export {}='{}:SYSTEM_DEFAULT:USER_DEFAULT'\n", kPathVariable, ours);
    return 0;
}

/// Prints what gives each process an engine inside, on that wire.
void print_wire(const std::string& wire, bool explain) {
    if (wire.empty()) return;
    if (explain)
        fmt::print(
            "# Each process has an engine inside, on a UDP socket, without privilege and on any\n"
            "# network. The engines find each other by the launcher or the MPI.\n");
    fmt::print("export ULC_ENGINE=embedded:{}\n", wire);
}

int print_for_open_mpi(bool explain, bool one_sided) {
    const OpenMpi mpi = find_open_mpi();
    if (mpi.mpirun.empty())
        return refuse("there is no mpirun of Open MPI in PATH; apt-get install openmpi-bin");
    const std::string provider = find_provider();
    if (one_sided && provider.empty())
        return refuse("libulc-fi.so is not built; run tools/setup test and build again");
    if (one_sided && is_5(mpi)) {
        print_one_sided_of_5(provider, explain);
        return print_component(mpi, explain);
    }
    if (!provider.empty()) print_messages_of_open_mpi(provider, explain);
    if (one_sided) print_one_sided(explain);
    return print_component(mpi, explain);
}

int print_for_mpich(bool intel, bool explain) {
    const Mpich mpi = find_mpich();
    if (mpi.mpiexec.empty())
        return refuse("there is no mpiexec.hydra in PATH; apt-get install mpich");
    if (mpi.library.empty())
        return refuse("libulc-mpich.so is not built; run tools/setup test and build again");
    if (!mpi.why_not.empty())
        return refuse(fmt::format("{} cannot be loaded: {}", mpi.library, mpi.why_not));
    if (explain) {
        fmt::print(
            "# A program's collective calls go to this library first, because MPICH loads no "
            "parts\n"
            "# of others. Set it for all ranks or for none. Programs without MPI are not "
            "changed.\n");
    }
    fmt::print("export LD_PRELOAD='{}'\"${{LD_PRELOAD:+:$LD_PRELOAD}}\"\n", mpi.library);
    const std::string provider = find_provider();
    if (!provider.empty()) print_messages_of_mpich(provider, intel, explain);
    return 0;
}

}  // namespace

void add_env_command(Command& app, int* exit_code) {
    struct Options {
        std::string mpi;
        bool explain = false;
        bool one_sided = false;
        std::string wire;
    };
    auto options = std::make_shared<Options>();
    auto command =
        app.add_subcommand("env", "Print the variables with which an MPI finds the parts of ULC");
    command.add_option("mpi", options->mpi, "The MPI: openmpi, mpich or intel")
        .required()
        .one_of({"openmpi", "mpich", "intel"});
    command.add_flag("--explain", options->explain,
                     "Say what each variable does and why this machine needs it");
    command.add_flag("--one-sided", options->one_sided,
                     "Open MPI: windows use ULC too, for an endpoint more a process");
    command
        .add_option("--wire", options->wire,
                    "udp: an engine inside each process, on any network, without privilege")
        .one_of({"udp"});
    command.footer("Example: eval $(ulc env openmpi)");
    command.callback([options, exit_code] {
        print_wire(options->wire, options->explain);
        *exit_code = options->mpi == "openmpi"
                         ? print_for_open_mpi(options->explain, options->one_sided)
                         : print_for_mpich(options->mpi == "intel", options->explain);
    });
}

}  // namespace ulc::tools

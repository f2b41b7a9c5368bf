// SPDX-License-Identifier: BSD-3-Clause
#include "tools/ulc/run/mpi_host.h"

#include <fmt/format.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "tools/ulc/programs.h"

namespace ulc::tools {
namespace {

constexpr const char* kComponent = "mca_coll_ulc.so";
constexpr const char* kProvider = "libulc-fi.so";
constexpr const char* kMpichLibrary = "libulc-mpich.so";
constexpr const char* kAnswers = "mca:coll:ulc:version";

/// Returns all that a shell command prints; empty if it cannot be started.
std::string output_of(const std::string& command) {
    struct Close {
        void operator()(std::FILE* file) const { ::pclose(file); }
    };
    const std::unique_ptr<std::FILE, Close> pipe(::popen(command.c_str(), "re"));
    std::string text;
    std::array<char, 4096> piece;
    while (pipe != nullptr) {
        const std::size_t n = std::fread(piece.data(), 1, piece.size(), pipe.get());
        if (n == 0) break;
        text.append(piece.data(), n);
    }
    return text;
}

/// Returns the rest of the first line that has `mark`, from behind it.
std::string behind(const std::string& text, const std::string& mark) {
    const auto at = text.find(mark);
    if (at == std::string::npos) return "";
    const auto begin = at + mark.size();
    return text.substr(begin, text.find('\n', begin) - begin);
}

/// Returns true if ranks under mpirun look for components in PMIx's folder alone: Open MPI 5 gives
/// them PMIx's path, unless the environment has one.
bool is_overridden(const OpenMpi& mpi) {
    return mpi.version.starts_with("5.") &&
           environment_of("OMPI_MCA_mca_base_component_path").empty();
}

Finding component_finding(const OpenMpi& mpi) {
    const std::string ours = find_component();
    if (mpi.loads_us && is_overridden(mpi)) {
        return {Level::kWarn, "collectives",
                "Open MPI loads mca_coll_ulc.so; ranks under mpirun look in PMIx's folder alone",
                "eval $(ulc env openmpi)"};
    }
    if (mpi.loads_us) return {Level::kOk, "collectives", "Open MPI loads mca_coll_ulc.so", ""};
    if (!mpi.why_not.empty()) {
        return {Level::kFail, "collectives",
                "Open MPI finds mca_coll_ulc.so and cannot load it: " + mpi.why_not,
                "ldconfig, or set LD_LIBRARY_PATH to the folder of libulc.so"};
    }
    if (ours.empty()) {
        return {Level::kWarn, "collectives", "mca_coll_ulc.so is not built",
                "tools/setup test && meson setup --reconfigure build/release && ninja -C "
                "build/release"};
    }
    return {Level::kWarn, "collectives", "no component folder of Open MPI has mca_coll_ulc.so",
            fmt::format("mkdir -p ~/.openmpi/components && ln -s {} ~/.openmpi/components/", ours)};
}

Finding mpich_finding(const Mpich& mpi) {
    if (mpi.library.empty()) {
        return {Level::kWarn, "mpich collectives", "libulc-mpich.so is not built",
                "tools/setup test && meson setup --reconfigure build/release && ninja -C "
                "build/release"};
    }
    if (!mpi.why_not.empty()) {
        return {Level::kFail, "mpich collectives",
                fmt::format("{} cannot be loaded: {}", mpi.library, mpi.why_not),
                "ldconfig, or set LD_LIBRARY_PATH to the folder of libulc.so"};
    }
    if (mpi.preloaded)
        return {Level::kOk, "mpich collectives", "MPICH's programs load libulc-mpich.so", ""};
    return {Level::kWarn, "mpich collectives",
            fmt::format("{} can be loaded, and LD_PRELOAD does not name it", mpi.library),
            "eval $(ulc env mpich)"};
}

void check_mpich(Findings& out) {
    const Mpich mpi = find_mpich();
    if (mpi.mpiexec.empty()) return;
    out.push_back(
        {Level::kOk, "mpich",
         fmt::format("{}, version {}", mpi.mpiexec, mpi.version.empty() ? "unknown" : mpi.version),
         ""});
    out.push_back(mpich_finding(mpi));
}

}  // namespace

Mpich find_mpich() {
    Mpich mpi;
    mpi.mpiexec = find_in_path("mpiexec.hydra");
    if (mpi.mpiexec.empty()) return mpi;
    mpi.version = behind(output_of("mpichversion 2>/dev/null"), "MPICH Version:");
    mpi.version.erase(0, mpi.version.find_first_not_of(" \t"));
    mpi.library = find_library(kMpichLibrary, "coll/mpi");
    if (mpi.library.empty()) return mpi;
    mpi.preloaded = environment_of("LD_PRELOAD").find(kMpichLibrary) != std::string::npos;
    const std::string said = output_of(fmt::format("LD_PRELOAD='{}' /bin/true 2>&1", mpi.library));
    mpi.why_not = behind(said, "error while loading shared libraries: ");
    if (mpi.why_not.empty())
        mpi.why_not = behind(said, fmt::format("object '{}' from LD_PRELOAD ", mpi.library));
    return mpi;
}

OpenMpi find_open_mpi() {
    OpenMpi mpi;
    if (find_in_path("ompi_info").empty()) return mpi;
    mpi.mpirun = find_in_path("mpirun");
    mpi.version = behind(output_of("ompi_info --parsable --version 2>/dev/null"), "Open MPI v");
    mpi.folder =
        behind(output_of("ompi_info --parsable --path pkglibdir 2>/dev/null"), "path:pkglibdir:");
    const std::string text = output_of("ompi_info --parsable --param coll ulc --level 9 2>&1");
    mpi.loads_us = text.find(kAnswers) != std::string::npos;
    mpi.why_not = behind(text, "unable to open mca_coll_ulc: ");
    return mpi;
}

std::string misfit_of(const OpenMpi& mpi) {
    const std::string built = ULC_OPEN_MPI;
    if (built.empty()) return "";
    const auto minor = [](const std::string& version) {
        return version.substr(0, version.find('.', version.find('.') + 1));
    };
    const bool fits =
        minor(mpi.version) == minor(built) && (built.starts_with("4.") || mpi.version == built);
    if (fits) return "";
    return fmt::format("{} is version {}, and the component was built for {}; build it again here",
                       mpi.mpirun, mpi.version, built);
}

std::string find_pmix_components() {
    const std::string library = behind(
        output_of("PATH=$PATH:/sbin:/usr/sbin ldconfig -p 2>/dev/null | grep libpmix.so.2"), "=> ");
    std::error_code error;
    const auto folder = std::filesystem::canonical(library, error).parent_path() / "pmix";
    return std::filesystem::is_directory(folder, error) ? folder.string() : "";
}

std::string find_component() { return find_library(kComponent, "coll/mpi"); }

std::string find_component_folder(const OpenMpi& mpi) {
    const std::string of_user = environment_of("HOME") + "/.openmpi/components";
    for (const std::string& folder : {mpi.folder, of_user}) {
        std::error_code error;
        if (std::filesystem::exists(std::filesystem::path(folder) / kComponent, error))
            return folder;
    }
    return std::filesystem::path(find_component()).parent_path().string();
}

std::string find_provider() {
    const std::string built = find_library(kProvider, "libulc/ofi");
    return !built.empty() ? built : find_library(std::string("libfabric/") + kProvider, "lib");
}

void check_mpi(Findings& out) {
    const OpenMpi mpi = find_open_mpi();
    if (mpi.mpirun.empty()) {
        out.push_back({Level::kWarn, "open mpi", "there is no mpirun of Open MPI in PATH",
                       "apt-get install openmpi-bin"});
    } else if (const std::string misfit = misfit_of(mpi); !misfit.empty()) {
        out.push_back({Level::kWarn, "open mpi", misfit,
                       "meson setup --reconfigure build/release && ninja -C build/release"});
    } else {
        out.push_back(
            {Level::kOk, "open mpi",
             fmt::format("{}, version {}, components in {}", mpi.mpirun, mpi.version, mpi.folder),
             ""});
        out.push_back(component_finding(mpi));
    }
    check_mpich(out);
}

}  // namespace ulc::tools

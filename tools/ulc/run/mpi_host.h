// SPDX-License-Identifier: BSD-3-Clause
// The MPIs of this machine and the parts of ULC that they load: asks Open MPI's own ompi_info, and
// the dynamic linker for MPICH's programs.
// Used by `ulc doctor --mpi` and `ulc env`.
#pragma once

#include <string>

#include "tools/ulc/doctor/doctor.h"

namespace ulc::tools {

struct OpenMpi {
    std::string mpirun;     ///< full path; empty: there is no Open MPI
    std::string version;    ///< "4.1.4"
    std::string folder;     ///< system-wide component folder
    bool loads_us = false;  ///< mca_coll_ulc.so, in the present environment
    std::string why_not;    ///< Open MPI's words if it found the file and could not load it
};

[[nodiscard]] OpenMpi find_open_mpi();

/// Returns why our component does not fit that Open MPI, in a sentence; empty: it does. Open MPI 5
/// changed the interface of components under one number, so there it fits one release alone.
[[nodiscard]] std::string misfit_of(const OpenMpi& mpi);

/// Returns the folder of components next to the PMIx library of this machine; empty: none.
[[nodiscard]] std::string find_pmix_components();

struct Mpich {
    std::string mpiexec;     ///< full path of Hydra's; empty: there is no MPICH
    std::string version;     ///< "4.0.2"; empty: unknown
    std::string library;     ///< our libulc-mpich.so; empty: it was not built
    bool preloaded = false;  ///< LD_PRELOAD of the present environment names it
    std::string why_not;     ///< the dynamic linker's words if it cannot load it
};

[[nodiscard]] Mpich find_mpich();

/// Returns the path of our component in the build tree or next to our libraries; empty: it was not
/// built.
[[nodiscard]] std::string find_component();

/// Returns the folder that has our component: one where Open MPI looks by itself, else that of
/// find_component(); empty: there is none.
[[nodiscard]] std::string find_component_folder(const OpenMpi& mpi);

/// Returns the path of our provider for libfabric, as find_component() does.
[[nodiscard]] std::string find_provider();

/// Looks at each MPI and at the parts of ULC that it loads.
void check_mpi(Findings& out);

}  // namespace ulc::tools

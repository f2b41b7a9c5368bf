# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Sourced by tests of Open MPI: puts its own mpirun and compilers first in PATH, because another MPI
# may have these names (Debian's alternatives). Sets `openmpi_tools`, a folder to remove.
openmpi_tools=$(mktemp -d) || exit 1
for tool in mpirun mpicc mpif77 mpifort; do
    found=$(command -v "$tool.openmpi") && ln -s "$found" "$openmpi_tools/$tool"
done
PATH=$openmpi_tools:$PATH
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
# The component for shared memory.
openmpi_shared=vader
openmpi_is_5=
if mpirun --version 2>/dev/null | grep -q 'Open MPI) 5'; then
    openmpi_is_5=yes openmpi_shared=sm
fi
# use_component ULC: lets ranks under mpirun find the component. Open MPI 4.1 needs no variable for
# one in its own folder or in the user's.
use_component() {
    [ -z "$openmpi_is_5" ] || eval "$("$1" env openmpi | grep component_path)"
}

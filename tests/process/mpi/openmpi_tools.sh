# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Sourced by tests of Open MPI: puts its own mpirun and compilers first in PATH, because another MPI
# may have these names (Debian's alternatives). Sets `openmpi_tools`, a folder to remove.
openmpi_tools=$(mktemp -d) || exit 1
for tool in mpirun mpicc mpif77 mpifort; do
    found=$(command -v "$tool.openmpi") && ln -s "$found" "$openmpi_tools/$tool"
done
PATH=$openmpi_tools:$PATH

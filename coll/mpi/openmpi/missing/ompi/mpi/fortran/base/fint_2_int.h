/* SPDX-License-Identifier: BSD-3-Clause */
/* Debian's package of Open MPI's headers lacks this one. It converts an int to Fortran's INTEGER:
 * Debian's compilers give both four bytes. */
#ifndef ULC_MISSING_FINT_2_INT_H
#define ULC_MISSING_FINT_2_INT_H
#define OMPI_INT_2_FINT(a) (a)
#endif

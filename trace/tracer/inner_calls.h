/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCT_INNER_CALLS_H_INCLUDED
#define ZCT_INNER_CALLS_H_INCLUDED

/**
 * zct_leave_inner_calls - let the MPI library's calls of itself go past the tracer
 * @function: any function of the library
 *
 * Open MPI's MPI_Sendrecv_replace calls PMPI_Sendrecv at the border of a domain, and MPICH's MPI-IO
 * all kinds of functions. By name those would be the tracer's, and be recorded as the program's.
 * The library's own references to functions of MPI that it defines are bound to these instead. A
 * library that has the Fortran functions in it keeps its references: they are how the program's
 * calls come.
 *
 * Does nothing on processors but x86-64 and AArch64.
 */
void zct_leave_inner_calls(void *function);

#endif

! SPDX-License-Identifier: BSD-3-Clause
!
! The module zcm for programs with `use mpi_f08`: zcm_world() returns a type(MPI_Comm), and
! zcm_register() takes a type(MPI_Datatype) too. To be compiled with the program, by the compiler
! and for the MPI library that its module mpi_f08 is of. In functions for zcm_on_rebuild(), which
! get an integer, `comm%MPI_VAL = world`.
module zcm_f08
    use, intrinsic :: iso_c_binding
    use mpi_f08, only: MPI_Comm, MPI_Datatype
    use zcm, world_handle => zcm_world
    implicit none
    private :: world_handle, f08_world, register_f08

    interface zcm_world
        procedure f08_world
    end interface

    interface zcm_register
        procedure register_f08
    end interface

contains

    type(MPI_Comm) function f08_world()
        f08_world%MPI_VAL = world_handle()
    end function

    integer function register_f08(name, data, count, type) result(ierr)
        character(len=*), intent(in) :: name
        type(*), dimension(..), intent(inout), target :: data
        integer, intent(in) :: count
        type(MPI_Datatype), intent(in) :: type
        ierr = zcm_register(name, data, count, type%MPI_VAL)
    end function
end module

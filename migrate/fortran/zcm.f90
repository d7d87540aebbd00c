! SPDX-License-Identifier: BSD-3-Clause
!
! zcm - ranks of an MPI program move to other hosts while the job goes on, in Fortran
!
!     use mpi
!     use zcm
!     real(8), allocatable, target :: t(:, :)
!     integer, target :: step
!     call MPI_Init(ierr)
!     if (zcm_init() /= 0) error stop
!     ierr = zcm_register('t', t)                   ! resumed: filled here
!     ierr = zcm_register('step', step)
!     if (zcm_resumed() == 0) call fill(t)
!     do while (step < steps)
!         if (zcm_safe_point() /= 0) error stop     ! may not return: this process moved away
!         ... exchange over zcm_world(), compute ...
!         step = step + 1
!     end do
!     ierr = zcm_finalize()
!     call MPI_Finalize(ierr)
!
! The calls are those of zcm/zcm.h, which describes them; they return 0 or a negative errno. Handles
! are integers, as in mpif.h and the module mpi; with mpi_f08 they are the component MPI_VAL of a
! handle, or the module zcm_f08 is used instead of this one.
!
! Registered data is changed behind the compiler's back: it has the attribute TARGET (or is what a
! POINTER points to). It must be contiguous, and must not be a local variable of a procedure that
! returns.
module zcm
    use, intrinsic :: iso_c_binding
    implicit none
    private

    public :: zcm_init, zcm_register, zcm_reregister, zcm_unregister, zcm_on_save, zcm_saved_count
    public :: zcm_saved_name, zcm_on_rebuild, zcm_safe_point, zcm_total_safe_points, zcm_world
    public :: zcm_resumed, zcm_checkpoint, zcm_finalize, zcm_strerror
    public :: zcm_save_fn, zcm_world_fn

    integer, parameter :: EINVAL = 22

    ! How many elements data has, and of which MPI type they are.
    enum, bind(c)
        enumerator :: kind_integer, kind_real, kind_complex, kind_logical, kind_character
    end enum

    abstract interface
        ! Make the registered data current; 0, or another value to refuse.
        integer(c_int) function zcm_save_fn(arg) bind(c)
            import :: c_int, c_ptr
            type(c_ptr), value :: arg
        end function
        subroutine zcm_world_fn(world, arg) bind(c)
            import :: c_int, c_ptr
            integer(c_int), value :: world
            type(c_ptr), value :: arg
        end subroutine
    end interface

    ! ierr = zcm_register(name, data): data of an intrinsic type and any rank
    ! ierr = zcm_register(name, data, count, type): count elements of an MPI type, as in C
    interface zcm_register
        procedure register_i1, register_i2, register_i4, register_i8
        procedure register_r4, register_r8, register_c4, register_c8
        procedure register_l1, register_l4, register_ch, register_typed
    end interface

    ! ierr = zcm_reregister(name, data [, count]): as after a new allocation; the type stays
    interface zcm_reregister
        procedure reregister_whole, reregister_count
    end interface

    interface
        integer(c_int) function zcm_init() bind(c, name='zcm_f_init')
            import :: c_int
        end function
        integer(c_int) function zcm_safe_point() bind(c, name='zcm_safe_point')
            import :: c_int
        end function
        integer(c_int) function zcm_world() bind(c, name='zcm_f_world')
            import :: c_int
        end function
        integer(c_int) function zcm_resumed() bind(c, name='zcm_resumed')
            import :: c_int
        end function
        integer(c_int) function zcm_checkpoint() bind(c, name='zcm_checkpoint')
            import :: c_int
        end function
        integer(c_int) function zcm_finalize() bind(c, name='zcm_finalize')
            import :: c_int
        end function
        integer(c_int) function zcm_total_safe_points(total) bind(c, name='zcm_total_safe_points')
            import :: c_int, c_long_long
            integer(c_long_long), value :: total
        end function

        integer(c_int) function c_register(name, address, count, type) bind(c, name='zcm_f_register')
            import :: c_int, c_char, c_ptr, c_size_t
            character(kind=c_char), intent(in) :: name(*)
            type(c_ptr), value :: address
            integer(c_size_t), value :: count
            integer(c_int), value :: type
        end function
        integer(c_int) function c_type_of(family, bytes) bind(c, name='zcm_f_type')
            import :: c_int
            integer(c_int), value :: family, bytes
        end function
        integer(c_int) function c_reregister(name, address, count) bind(c, name='zcm_reregister')
            import :: c_int, c_char, c_ptr, c_size_t
            character(kind=c_char), intent(in) :: name(*)
            type(c_ptr), value :: address
            integer(c_size_t), value :: count
        end function
        integer(c_int) function c_unregister(name) bind(c, name='zcm_unregister')
            import :: c_int, c_char
            character(kind=c_char), intent(in) :: name(*)
        end function
        integer(c_long_long) function c_saved_count(name) bind(c, name='zcm_saved_count')
            import :: c_long_long, c_char
            character(kind=c_char), intent(in) :: name(*)
        end function
        type(c_ptr) function c_saved_name(index) bind(c, name='zcm_saved_name')
            import :: c_ptr, c_size_t
            integer(c_size_t), value :: index
        end function
        type(c_ptr) function c_strerror(code) bind(c, name='zcm_strerror')
            import :: c_ptr, c_int
            integer(c_int), value :: code
        end function
        integer(c_int) function c_on_save(fn, arg) bind(c, name='zcm_on_save')
            import :: c_int, c_ptr, c_funptr
            type(c_funptr), value :: fn
            type(c_ptr), value :: arg
        end function
        integer(c_int) function c_on_rebuild(release, rebuild, arg) bind(c, name='zcm_f_on_rebuild')
            import :: c_int, c_ptr, c_funptr
            type(c_funptr), value :: release, rebuild
            type(c_ptr), value :: arg
        end function
        integer(c_size_t) function c_strlen(text) bind(c, name='strlen')
            import :: c_size_t, c_ptr
            type(c_ptr), value :: text
        end function
    end interface

contains

    ! ---- data ----

    integer function register_whole(name, address, elements, contiguous, family, bytes) result(ierr)
        character(len=*), intent(in) :: name
        type(c_ptr), intent(in) :: address
        integer(c_size_t), intent(in) :: elements
        logical, intent(in) :: contiguous
        integer(c_int), intent(in) :: family
        integer, intent(in) :: bytes
        ierr = -EINVAL
        if (contiguous) then
            ierr = c_register(c_name(name), address, elements, c_type_of(family, int(bytes, c_int)))
        else
            write (0, '(a)') "zcm: '" // trim(name) // "' is not contiguous"
        end if
    end function

    integer function register_i1(name, data) result(ierr)
        character(len=*), intent(in) :: name
        integer(c_int8_t), dimension(..), intent(inout), target :: data
        ierr = register_whole(name, c_loc(data), size(data, kind=c_size_t), is_contiguous(data), &
                              kind_integer, 1)
    end function

    integer function register_i2(name, data) result(ierr)
        character(len=*), intent(in) :: name
        integer(c_int16_t), dimension(..), intent(inout), target :: data
        ierr = register_whole(name, c_loc(data), size(data, kind=c_size_t), is_contiguous(data), &
                              kind_integer, 2)
    end function

    integer function register_i4(name, data) result(ierr)
        character(len=*), intent(in) :: name
        integer(c_int32_t), dimension(..), intent(inout), target :: data
        ierr = register_whole(name, c_loc(data), size(data, kind=c_size_t), is_contiguous(data), &
                              kind_integer, 4)
    end function

    integer function register_i8(name, data) result(ierr)
        character(len=*), intent(in) :: name
        integer(c_int64_t), dimension(..), intent(inout), target :: data
        ierr = register_whole(name, c_loc(data), size(data, kind=c_size_t), is_contiguous(data), &
                              kind_integer, 8)
    end function

    integer function register_r4(name, data) result(ierr)
        character(len=*), intent(in) :: name
        real(c_float), dimension(..), intent(inout), target :: data
        ierr = register_whole(name, c_loc(data), size(data, kind=c_size_t), is_contiguous(data), &
                              kind_real, 4)
    end function

    integer function register_r8(name, data) result(ierr)
        character(len=*), intent(in) :: name
        real(c_double), dimension(..), intent(inout), target :: data
        ierr = register_whole(name, c_loc(data), size(data, kind=c_size_t), is_contiguous(data), &
                              kind_real, 8)
    end function

    integer function register_c4(name, data) result(ierr)
        character(len=*), intent(in) :: name
        complex(c_float_complex), dimension(..), intent(inout), target :: data
        ierr = register_whole(name, c_loc(data), size(data, kind=c_size_t), is_contiguous(data), &
                              kind_complex, 8)
    end function

    integer function register_c8(name, data) result(ierr)
        character(len=*), intent(in) :: name
        complex(c_double_complex), dimension(..), intent(inout), target :: data
        ierr = register_whole(name, c_loc(data), size(data, kind=c_size_t), is_contiguous(data), &
                              kind_complex, 16)
    end function

    integer function register_l1(name, data) result(ierr)
        character(len=*), intent(in) :: name
        logical(c_bool), dimension(..), intent(inout), target :: data
        ierr = register_whole(name, c_loc(data), size(data, kind=c_size_t), is_contiguous(data), &
                              kind_logical, 1)
    end function

    integer function register_l4(name, data) result(ierr)
        character(len=*), intent(in) :: name
        logical, dimension(..), intent(inout), target :: data
        ierr = register_whole(name, c_loc(data), size(data, kind=c_size_t), is_contiguous(data), &
                              kind_logical, storage_size(.true.) / 8)
    end function

    integer function register_ch(name, data) result(ierr)
        character(len=*), intent(in) :: name
        character(kind=c_char, len=*), dimension(..), intent(inout), target :: data
        ierr = register_whole(name, c_loc(data), size(data, kind=c_size_t) * len(data), &
                              is_contiguous(data), kind_character, 1)
    end function

    integer function register_typed(name, data, count, type) result(ierr)
        character(len=*), intent(in) :: name
        type(*), dimension(..), intent(inout), target :: data
        integer, intent(in) :: count, type
        ierr = c_register(c_name(name), c_loc(data), int(count, c_size_t), int(type, c_int))
    end function

    integer function reregister_whole(name, data) result(ierr)
        character(len=*), intent(in) :: name
        type(*), dimension(..), intent(inout), target :: data
        ierr = -EINVAL
        if (is_contiguous(data)) &
            ierr = c_reregister(c_name(name), c_loc(data), size(data, kind=c_size_t))
    end function

    integer function reregister_count(name, data, count) result(ierr)
        character(len=*), intent(in) :: name
        type(*), dimension(..), intent(inout), target :: data
        integer, intent(in) :: count
        ierr = c_reregister(c_name(name), c_loc(data), int(count, c_size_t))
    end function

    integer function zcm_unregister(name) result(ierr)
        character(len=*), intent(in) :: name
        ierr = c_unregister(c_name(name))
    end function

    ! ---- what was saved ----

    integer(c_long_long) function zcm_saved_count(name) result(count)
        character(len=*), intent(in) :: name
        count = c_saved_count(c_name(name))
    end function

    ! By number, from 1; empty beyond the last.
    function zcm_saved_name(number) result(name)
        integer, intent(in) :: number
        character(len=:), allocatable :: name
        type(c_ptr) :: text
        text = c_null_ptr
        name = ''
        if (number > 0) text = c_saved_name(int(number - 1, c_size_t))
        if (c_associated(text)) name = f_text(text)
    end function

    ! ---- callbacks ----

    integer function zcm_on_save(fn, arg) result(ierr)
        procedure(zcm_save_fn) :: fn
        type(c_ptr), intent(in), optional :: arg
        ierr = c_on_save(c_funloc(fn), pointer_or_null(arg))
    end function

    integer function zcm_on_rebuild(release, rebuild, arg) result(ierr)
        procedure(zcm_world_fn), optional :: release, rebuild
        type(c_ptr), intent(in), optional :: arg
        type(c_funptr) :: before, after
        before = c_null_funptr
        after = c_null_funptr
        if (present(release)) before = c_funloc(release)
        if (present(rebuild)) after = c_funloc(rebuild)
        ierr = c_on_rebuild(before, after, pointer_or_null(arg))
    end function

    ! ---- texts ----

    function zcm_strerror(code) result(text)
        integer, intent(in) :: code
        character(len=:), allocatable :: text
        text = f_text(c_strerror(int(code, c_int)))
    end function

    type(c_ptr) function pointer_or_null(arg) result(pointer)
        type(c_ptr), intent(in), optional :: arg
        pointer = c_null_ptr
        if (present(arg)) pointer = arg
    end function

    function c_name(name) result(text)
        character(len=*), intent(in) :: name
        character(len=len_trim(name) + 1) :: text
        text = trim(name) // c_null_char
    end function

    function f_text(pointer) result(text)
        type(c_ptr), intent(in) :: pointer
        character(len=:), allocatable :: text
        character(kind=c_char), pointer :: letters(:)
        integer :: i
        call c_f_pointer(pointer, letters, [c_strlen(pointer)])
        allocate (character(len=size(letters)) :: text)
        do i = 1, size(letters)
            text(i:i) = letters(i)
        end do
    end function
end module

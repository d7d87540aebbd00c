! SPDX-License-Identifier: BSD-3-Clause
!
! Data of every intrinsic type and several ranks, and of a derived type, in a program that uses
! mpi_f08; some of it is made current, and a communicator made again, by functions of the program.
!
!     state_f08 FILE       until FILE exists
program state_f08
    use, intrinsic :: iso_c_binding
    use mpi_f08
    use zcm_f08
    implicit none

    type :: particle
        integer :: number
        real(c_double) :: at(3)
    end type

    integer(c_int8_t), target :: i1(3)
    integer(c_int16_t), target :: i2(2, 2)
    integer, target :: step
    integer(c_int64_t), target :: i8
    real, target :: r4(2, 3, 4)
    real(c_double), allocatable, target :: r8(:, :)
    complex, target :: c4(5)
    complex(c_double_complex), target :: c8(1000)
    logical, target :: l4(7)
    logical(c_bool), target :: l1
    character(len=10), target :: text(3)
    type(particle), target :: particles(100)
    integer, target :: packed(50)

    type(MPI_Comm) :: ring
    type(MPI_Datatype) :: particle_type
    integer :: rank, ranks, sum_of_ranks, asked
    character(len=4096) :: until
    logical :: over

    call MPI_Init()
    if (zcm_init() /= 0) error stop 'cannot start'
    call MPI_Comm_rank(zcm_world(), rank)
    call MPI_Comm_size(zcm_world(), ranks)
    call get_command_argument(1, until)
    call make_particle_type
    allocate (r8(30, 40))
    step = 0
    asked = 0
    call need(zcm_register('i1', i1), 'i1')
    call need(zcm_register('i2', i2), 'i2')
    call need(zcm_register('step', step), 'step')
    call need(zcm_register('i8', i8), 'i8')
    call need(zcm_register('r4', r4), 'r4')
    call need(zcm_register('r8', r8), 'r8')
    call need(zcm_register('c4', c4), 'c4')
    call need(zcm_register('c8', c8), 'c8')
    call need(zcm_register('l4', l4), 'l4')
    call need(zcm_register('l1', l1), 'l1')
    call need(zcm_register('text', text), 'text')
    call need(zcm_register('particles', particles, size(particles), particle_type), 'particles')
    call need(zcm_register('packed', packed), 'packed')
    if (zcm_register('every second', r8(::2, 1)) >= 0) error stop 'not contiguous, and taken'
    if (zcm_register('r4', r4) >= 0) error stop 'taken twice'
    call need(zcm_on_save(make_current), 'on_save')
    call need(zcm_on_rebuild(release, rebuild), 'on_rebuild')
    if (zcm_resumed() == 0) then
        call rebuild(handle_of(zcm_world()), c_null_ptr)
        if (zcm_saved_count('r8') >= 0 .or. zcm_saved_name(1) /= '') error stop 'nothing was saved'
    else
        if (zcm_saved_count('r8') /= 1200 .or. zcm_saved_count('text') /= 30) error stop 'count'
        if (zcm_saved_count('particles') /= 100) error stop 'count of particles'
        if (zcm_saved_name(1) /= 'c4' .or. zcm_saved_name(13) /= 'text' .or. zcm_saved_name(14) /= '') &
            error stop 'names'
        if (any(packed /= step)) error stop 'not packed when saved'
    end if

    over = .false.
    do while (.not. over)
        call need(zcm_safe_point(), 'safe point')
        if (step > 0) call verify
        step = step + 1
        call fill
        call MPI_Allreduce(rank, sum_of_ranks, 1, MPI_INTEGER, MPI_SUM, ring)
        if (sum_of_ranks /= ranks * (ranks - 1) / 2) error stop 'wrong communicator'
        if (rank == 0) inquire (file=until, exist=over)
        call MPI_Bcast(over, 1, MPI_LOGICAL, 0, ring)
    end do
    if (rank == 0) print '(a)', 'all right'
    call MPI_Comm_free(ring)
    if (len(zcm_strerror(-17)) == 0) error stop 'strerror'
    call need(zcm_finalize(), 'finalize')
    call MPI_Finalize()

contains

    subroutine need(code, what)
        integer, intent(in) :: code
        character(len=*), intent(in) :: what
        if (code == 0) return
        write (0, '(a, i0, 3a)') what, code, ' (', zcm_strerror(code), ')'
        error stop 1
    end subroutine

    integer function handle_of(comm)
        type(MPI_Comm), intent(in) :: comm
        handle_of = comm%MPI_VAL
    end function

    subroutine make_particle_type
        type(MPI_Datatype) :: types(2), inner
        integer(MPI_ADDRESS_KIND) :: places(2), size_of_one
        places = [0_MPI_ADDRESS_KIND, &
                  int(transfer(c_loc(particles(1)%at), 0_c_intptr_t) - &
                      transfer(c_loc(particles(1)), 0_c_intptr_t), MPI_ADDRESS_KIND)]
        size_of_one = storage_size(particles) / 8
        types = [MPI_INTEGER, MPI_DOUBLE_PRECISION]
        call MPI_Type_create_struct(2, [1, 3], places, types, inner)
        call MPI_Type_create_resized(inner, 0_MPI_ADDRESS_KIND, size_of_one, particle_type)
        call MPI_Type_free(inner)
    end subroutine

    subroutine fill
        integer :: i
        i1 = int(mod(step, 100), c_int8_t)
        i2 = int(mod(step, 1000), c_int16_t)
        i8 = 1000000000000_c_int64_t + step
        r4 = real(step) / 2
        r8 = step + 0.25d0 * rank
        c4 = cmplx(step, rank)
        c8 = cmplx(-step, rank, kind=c_double)
        l4 = mod(step, 2) == 0
        l1 = mod(step, 3) == 0
        write (text, '(i10)') step, step + 1, step + 2
        do i = 1, size(particles)
            particles(i)%number = step + i
            particles(i)%at = [0.5d0, 1.5d0, 2.5d0] * step
        end do
    end subroutine

    subroutine verify
        integer :: i, number
        if (any(i1 /= mod(step, 100)) .or. any(i2 /= mod(step, 1000))) error stop 'i1, i2'
        if (i8 /= 1000000000000_c_int64_t + step) error stop 'i8'
        if (any(r4 /= real(step) / 2)) error stop 'r4'
        if (any(r8 /= step + 0.25d0 * rank)) error stop 'r8'
        if (any(c4 /= cmplx(step, rank))) error stop 'c4'
        if (any(c8 /= cmplx(-step, rank, kind=c_double))) error stop 'c8'
        if (any(l4 .neqv. mod(step, 2) == 0)) error stop 'l4'
        if (l1 .neqv. logical(mod(step, 3) == 0, c_bool)) error stop 'l1'
        do i = 1, 3
            read (text(i), *) number
            if (number /= step + i - 1) error stop 'text'
        end do
        do i = 1, size(particles)
            if (particles(i)%number /= step + i) error stop 'number'
            if (any(particles(i)%at /= [0.5d0, 1.5d0, 2.5d0] * step)) error stop 'at'
        end do
    end subroutine

    integer(c_int) function make_current(arg) bind(c)
        type(c_ptr), value :: arg
        packed = step
        make_current = merge(1, 0, c_associated(arg))
    end function

    subroutine release(world, arg) bind(c)
        integer(c_int), value :: world
        type(c_ptr), value :: arg
        if (c_associated(arg) .or. world == MPI_COMM_NULL%MPI_VAL) error stop 'release'
        call MPI_Comm_free(ring)
    end subroutine

    subroutine rebuild(world, arg) bind(c)
        integer(c_int), value :: world
        type(c_ptr), value :: arg
        type(MPI_Comm) :: comm
        if (c_associated(arg)) error stop 'rebuild'
        comm%MPI_VAL = world
        call MPI_Comm_dup(comm, ring)
    end subroutine
end program

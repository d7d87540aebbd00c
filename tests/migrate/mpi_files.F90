! SPDX-License-Identifier: BSD-3-Clause
!
! A file of MPI-IO on a communicator of the program's, closed for a move and opened again.
!
!     mpi_files DATA FILE       until FILE exists
!
! With the module mpi; with -DWITH_F08 the module mpi_f08.
#ifdef WITH_F08
#define BINDING mpi_f08
#define COMM type(MPI_Comm)
#define FILEHANDLE type(MPI_File)
#define GROUP type(MPI_Group)
#define REQUEST type(MPI_Request)
#define STATUS(name) type(MPI_Status) :: name
#else
#define BINDING mpi
#define COMM integer
#define FILEHANDLE integer
#define GROUP integer
#define REQUEST integer
#define STATUS(name) integer :: name(MPI_STATUS_SIZE)
#endif
module the_file
    use BINDING
    use, intrinsic :: iso_c_binding
    implicit none
    integer, parameter :: words = 1000, rows = 100
    COMM :: ring
    FILEHANDLE :: file
    integer :: rank, ranks
    character(len=4096) :: path
contains
    subroutine need(code, what)
        integer, intent(in) :: code
        character(len=*), intent(in) :: what
        if (code == MPI_SUCCESS) return
        print '(2a)', 'failed: ', what
        error stop 1
    end subroutine

    subroutine open_file(world, arg) bind(c)
        integer(c_int), value :: world
        type(c_ptr), value :: arg
        integer :: code, count, same
        GROUP :: own, theirs
        if (world == 12345 .or. c_associated(arg)) error stop 'open_file'
        call MPI_File_open(ring, trim(path), MPI_MODE_CREATE + MPI_MODE_RDWR, MPI_INFO_NULL, file, code)
        call need(code, 'open')
        call MPI_File_get_group(file, own, code)
        call need(code, 'get_group')
        call MPI_Group_size(own, count, code)
        call MPI_Comm_group(ring, theirs, code)
        call MPI_Group_compare(own, theirs, same, code)
        if (count /= ranks .or. same /= MPI_IDENT) error stop 'another group'
        call MPI_Group_free(own, code)
        call MPI_Group_free(theirs, code)
    end subroutine

    subroutine close_file(world, arg) bind(c)
        integer(c_int), value :: world
        type(c_ptr), value :: arg
        integer :: code
        if (world == 12345 .or. c_associated(arg)) error stop 'close_file'
        call MPI_File_close(file, code)
        call need(code, 'close')
        if (file /= MPI_FILE_NULL) error stop 'it has a handle still'
    end subroutine

    integer(MPI_OFFSET_KIND) function place(row, of)
        integer, intent(in) :: row, of
        place = (int(row, MPI_OFFSET_KIND) * ranks + of) * words * 4
    end function

    subroutine write_row(step)
        integer, intent(in) :: step
        integer, asynchronous :: part(words)
        integer :: row, code, k, count
        REQUEST :: begun
        STATUS(status)
        row = mod(step, rows)
        part = [(step * 7 + rank * 1000 + k, k=1, words)]
        if (mod(step, 2) == 0) then
            call MPI_File_write_at_all(file, place(row, rank), part, words, MPI_INTEGER, status, code)
        else
            call MPI_File_iwrite_at(file, place(row, rank), part, words, MPI_INTEGER, begun, code)
            call need(code, 'iwrite_at')
            call MPI_Wait(begun, status, code)
        end if
        call need(code, 'write')
        call MPI_Get_count(status, MPI_INTEGER, count, code)
        if (count /= words) error stop 'not all was written'
    end subroutine

    subroutine read_row(step)
        integer, intent(in) :: step
        integer, asynchronous :: part(words)
        integer :: code, k, of
        REQUEST :: begun
        STATUS(status)
        of = mod(rank + 1, ranks)
        part = 0
        if (mod(step, 2) == 0) then
            call MPI_File_read_at_all(file, place(mod(step, rows), of), part, words, MPI_INTEGER, status, code)
        else
            call MPI_File_iread_at(file, place(mod(step, rows), of), part, words, MPI_INTEGER, begun, code)
            call need(code, 'iread_at')
            call MPI_Wait(begun, status, code)
        end if
        call need(code, 'read')
        if (any(part /= [(step * 7 + of * 1000 + k, k=1, words)])) error stop 'other words'
    end subroutine
end module

program mpi_files
    use BINDING
    use zcm
    use the_file
    implicit none
    integer, target :: step
    integer :: code
    logical :: over
    character(len=4096) :: until

    call MPI_Init(code)
    if (zcm_init() /= 0) error stop 'cannot start'
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, code)
    call MPI_Comm_size(MPI_COMM_WORLD, ranks, code)
    call get_command_argument(1, path)
    call get_command_argument(2, until)
    call MPI_Comm_split(MPI_COMM_WORLD, 0, rank, ring, code)
    step = 0
    if (zcm_register('step', step) /= 0) error stop 'step'
    if (zcm_on_rebuild(close_file, open_file) /= 0) error stop 'on_rebuild'
    if (zcm_resumed() == 0) call open_file(0_c_int, c_null_ptr)

    over = .false.
    do while (.not. over)
        if (zcm_safe_point() /= 0) error stop 'safe point'
        ! What was written before the last safe point, which may have been a move.
        if (step > 0) call read_row(step - 1)
        call MPI_Barrier(ring, code)
        call write_row(step)
        call MPI_File_sync(file, code)
        call MPI_Barrier(ring, code)
        step = step + 1
        if (rank == 0) inquire (file=until, exist=over)
        call MPI_Bcast(over, 1, MPI_LOGICAL, 0, MPI_COMM_WORLD, code)
    end do
    call close_file(0_c_int, c_null_ptr)
    call MPI_Comm_free(ring, code)
    if (rank == 0) print '(a)', 'all right'
    code = zcm_finalize()
    call MPI_Finalize(code)
end program

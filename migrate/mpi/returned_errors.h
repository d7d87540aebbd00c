/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <mpi.h>
#include <string>

namespace zc::migrate {

/**
 * While it lives, errors of calls over a communicator or a window are returned; then the handler
 * that there was handles them again. Handles of both kinds may be one type of C, so that the kind
 * is in the name of the class.
 */
template <typename Handle, int (*Get)(Handle, MPI_Errhandler *), int (*Set)(Handle, MPI_Errhandler)>
class returned_errors {
  public:
    explicit returned_errors(Handle of) : of_(of)
    {
        Get(of_, &before_);
        Set(of_, MPI_ERRORS_RETURN);
    }
    ~returned_errors()
    {
        Set(of_, before_);
        PMPI_Errhandler_free(&before_);
    }
    returned_errors(const returned_errors &) = delete;
    returned_errors &operator=(const returned_errors &) = delete;

  private:
    Handle of_;
    MPI_Errhandler before_ = MPI_ERRHANDLER_NULL;
};

using returned_errors_of_communicator =
    returned_errors<MPI_Comm, PMPI_Comm_get_errhandler, PMPI_Comm_set_errhandler>;
using returned_errors_of_window =
    returned_errors<MPI_Win, PMPI_Win_get_errhandler, PMPI_Win_set_errhandler>;

/** What MPI says of an error @code. */
inline std::string words_of(int code)
{
    char text[MPI_MAX_ERROR_STRING];
    int length = 0;
    PMPI_Error_string(code, text, &length);
    return {text, static_cast<std::size_t>(length)};
}

} // namespace zc::migrate

/* SPDX-License-Identifier: BSD-3-Clause */
#include "late_report.h"

#include <utility>

#include "clock.h"
#include "returned_errors.h"
#include "world.h"

namespace zc::migrate {

late_report::late_report(MPI_Comm between, std::function<std::string(const effort_of_all &)> text)
    : between_(between), text_(std::move(text))
{
    PMPI_Iallreduce(none_.most.data(), told_.most.data(), static_cast<int>(told_.most.size()),
                    MPI_DOUBLE, MPI_MAX, between_, &requests_[0]);
    PMPI_Iallreduce(none_.sum.data(), told_.sum.data(), static_cast<int>(told_.sum.size()),
                    MPI_DOUBLE, MPI_SUM, between_, &requests_[1]);
}

bool late_report::is_there()
{
    int done = 0;
    /* Errors of several requests are for its handler. */
    const returned_errors_of_communicator returned(MPI_COMM_WORLD);
    lost_ = lost_ || PMPI_Testall(static_cast<int>(requests_.size()), requests_.data(), &done,
                                  MPI_STATUSES_IGNORE) != MPI_SUCCESS;
    if (lost_)
        return false;
    if (done && between_ != MPI_COMM_NULL)
        part(between_);
    return done;
}

void late_report::await()
{
    for (pause pause; !is_there() && !lost_; pause.rest())
        continue;
}

} // namespace zc::migrate

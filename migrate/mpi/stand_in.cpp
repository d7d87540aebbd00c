/* SPDX-License-Identifier: BSD-3-Clause */
#include "stand_in.h"

namespace zc::migrate {

world stand_in::make(int rank, int size)
{
    world it;
    PMPI_Comm_dup(MPI_COMM_SELF, &it.user);
    it.rank = rank_ = rank;
    it.size = size_ = size;
    comm_ = it.user;
    return it;
}

void stand_in::give_up(world &it)
{
    comm_ = MPI_COMM_NULL;
    PMPI_Comm_free(&it.user);
}

} // namespace zc::migrate

/* SPDX-License-Identifier: BSD-3-Clause */
#include "named_types.h"

namespace zc::migrate {

void named_types::open()
{
    for (const MPI_Datatype type : {MPI_BYTE,
                                    MPI_CHAR,
                                    MPI_SIGNED_CHAR,
                                    MPI_UNSIGNED_CHAR,
                                    MPI_SHORT,
                                    MPI_INT,
                                    MPI_LONG,
                                    MPI_LONG_LONG,
                                    MPI_UNSIGNED,
                                    MPI_FLOAT,
                                    MPI_UNSIGNED_SHORT,
                                    MPI_UNSIGNED_LONG,
                                    MPI_DOUBLE,
                                    MPI_PACKED,
                                    MPI_UNSIGNED_LONG_LONG,
                                    MPI_LONG_DOUBLE,
                                    MPI_INT8_T,
                                    MPI_INT16_T,
                                    MPI_INT32_T,
                                    MPI_INT64_T,
                                    MPI_UINT8_T,
                                    MPI_UINT16_T,
                                    MPI_UINT32_T,
                                    MPI_UINT64_T,
                                    MPI_C_BOOL,
                                    MPI_AINT,
                                    MPI_COUNT,
                                    MPI_OFFSET,
                                    MPI_C_COMPLEX,
                                    MPI_INTEGER,
                                    MPI_C_DOUBLE_COMPLEX,
                                    MPI_DOUBLE_PRECISION,
                                    MPI_REAL,
                                    MPI_COMPLEX,
                                    MPI_LOGICAL,
                                    MPI_DOUBLE_COMPLEX,
                                    MPI_CHARACTER}) {
        entry &there = all_[place_of(type)];
        int size = 0;
        if (there.size == 0 && type != MPI_DATATYPE_NULL &&
            PMPI_Type_size(type, &size) == MPI_SUCCESS && size > 0)
            there = {type, size};
    }
}

} // namespace zc::migrate

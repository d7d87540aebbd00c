/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* What the wrappers use that generate_calls makes. */
#include <atomic>
#include <cstdint>
#include <mpi.h>

#include "layer.h"
#include "open_things.h"
#include "recorder.h"
#include "requests.h"
#include "tell.h"
#include "traffic.h"

namespace zc::migrate {

/** A receive that ended with @code has taken its message. */
inline bool has_come(int code)
{
    if (code == MPI_SUCCESS) [[likely]]
        return true;
    int what = MPI_SUCCESS;
    PMPI_Error_class(code, &what);
    return what == MPI_ERR_TRUNCATE;
}

/** A tag that is a text, as a number. */
inline std::int64_t text_of(const char *tag)
{
    std::uint64_t sum = 0;
    for (; *tag; tag++)
        sum = sum * 131 + static_cast<unsigned char>(*tag);
    return static_cast<std::int64_t>(sum >> 1);
}

/** What a new communicator has of an old one. */
inline int inherited(MPI_Comm from, MPI_Comm to, bool copies)
{
    communicator *one = layer::find(from), *other = layer::find(to);
    if (!one || !other || one == other)
        return MPI_SUCCESS;
    other->on_error = one->on_error;
    other->awaited_handler = one->awaited_handler;
    return copies ? layer::instance().copy_attributes(*one, *other) : int{MPI_SUCCESS};
}

/** Of elements of a type, for comparisons. */
inline std::int64_t size_of(MPI_Datatype type)
{
    int size = -1;
    if (type != MPI_DATATYPE_NULL)
        PMPI_Type_size(type, &size);
    return size;
}

/** How many neighbours this rank receives from: noted, as a successor cannot ask MPI. */
inline int sources_of(recorder::visitor &with, MPI_Comm comm)
{
    int in = 0, out = 0, weighted = 0, kind = MPI_UNDEFINED;
    if (!with.gives()) {
        const MPI_Comm real = layer::real(comm);
        PMPI_Topo_test(real, &kind);
        if (kind == MPI_DIST_GRAPH)
            PMPI_Dist_graph_neighbors_count(real, &in, &out, &weighted);
        else
            in = static_cast<int>(profiler::instance().destinations(comm).size());
    }
    with.value(in);
    return in;
}

} // namespace zc::migrate

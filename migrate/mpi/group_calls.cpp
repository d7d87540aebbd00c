/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Groups as the program has them are lists of ranks of the job: nothing of MPI's, so that they
 * mean the same after a move.
 */
#include <algorithm>
#include <mpi.h>
#include <vector>

#include "layer.h"

using namespace zc::migrate;

namespace {

/* What a handle means; nullptr of one that is not the layer's: then MPI says what is wrong. */
const members *members_of(MPI_Group handle)
{
    static const members *const none = new members;
    if (layer::is_on() && handle == MPI_GROUP_EMPTY)
        return none;
    const group *found = layer::find_group(handle);
    return found ? &found->who : nullptr;
}

int place_in(const members &all, int who)
{
    const auto at = std::ranges::find(all, who);
    return at == all.end() ? MPI_UNDEFINED : static_cast<int>(at - all.begin());
}

int fail(int code)
{
    PMPI_Comm_call_errhandler(MPI_COMM_SELF, code);
    return code;
}

/** Indices that ranges of (first, last, stride) mean; false if one is not below @size. */
bool expand(int n, int ranges[][3], std::size_t size, std::vector<int> &indices)
{
    for (int i = 0; i < n; i++) {
        const auto [first, last, stride] = std::tuple(ranges[i][0], ranges[i][1], ranges[i][2]);
        if (stride == 0)
            return false;
        for (int at = first; stride > 0 ? at <= last : at >= last; at += stride)
            indices.push_back(at);
    }
    return std::ranges::all_of(
        indices, [&](int at) { return at >= 0 && static_cast<std::size_t>(at) < size; });
}

int include(const members &all, const std::vector<int> &indices, MPI_Group *made)
{
    members chosen;
    for (int at : indices) {
        if (at < 0 || static_cast<std::size_t>(at) >= all.size())
            return fail(MPI_ERR_RANK);
        chosen.push_back(all[static_cast<std::size_t>(at)]);
    }
    *made = layer::instance().make_group(std::move(chosen));
    return MPI_SUCCESS;
}

int exclude(const members &all, const std::vector<int> &indices, MPI_Group *made)
{
    std::vector<bool> out(all.size());
    for (int at : indices) {
        if (at < 0 || static_cast<std::size_t>(at) >= all.size())
            return fail(MPI_ERR_RANK);
        out[static_cast<std::size_t>(at)] = true;
    }
    members chosen;
    for (std::size_t i = 0; i < all.size(); i++)
        if (!out[i])
            chosen.push_back(all[i]);
    *made = layer::instance().make_group(std::move(chosen));
    return MPI_SUCCESS;
}

enum class combination { all, both, first_alone };

void combine(const members &one, const members &other, combination how, MPI_Group *made)
{
    members chosen;
    for (int who : one)
        if (how == combination::all ||
            (place_in(other, who) != MPI_UNDEFINED) == (how == combination::both))
            chosen.push_back(who);
    if (how == combination::all)
        for (int who : other)
            if (place_in(one, who) == MPI_UNDEFINED)
                chosen.push_back(who);
    *made = layer::instance().make_group(std::move(chosen));
}

} // namespace

extern "C" {
#pragma GCC visibility push(default)

int MPI_Group_size(MPI_Group handle, int *size)
{
    const members *all = members_of(handle);
    if (!all)
        return PMPI_Group_size(handle, size);
    *size = static_cast<int>(all->size());
    return MPI_SUCCESS;
}

int MPI_Group_rank(MPI_Group handle, int *rank)
{
    const members *all = members_of(handle);
    if (!all)
        return PMPI_Group_rank(handle, rank);
    *rank = place_in(*all, layer::instance().world().rank);
    return MPI_SUCCESS;
}

int MPI_Group_translate_ranks(MPI_Group from, int n, const int ranks[], MPI_Group to, int found[])
{
    const members *one = members_of(from), *other = members_of(to);
    if (!one || !other)
        return PMPI_Group_translate_ranks(from, n, ranks, to, found);
    for (int i = 0; i < n; i++) {
        if (ranks[i] == MPI_PROC_NULL)
            found[i] = MPI_PROC_NULL;
        else if (ranks[i] < 0 || static_cast<std::size_t>(ranks[i]) >= one->size())
            return fail(MPI_ERR_RANK);
        else
            found[i] = place_in(*other, (*one)[static_cast<std::size_t>(ranks[i])]);
    }
    return MPI_SUCCESS;
}

int MPI_Group_compare(MPI_Group first, MPI_Group second, int *result)
{
    const members *one = members_of(first), *other = members_of(second);
    if (!one || !other)
        return PMPI_Group_compare(first, second, result);
    *result = *one == *other                              ? MPI_IDENT
              : std::ranges::is_permutation(*one, *other) ? MPI_SIMILAR
                                                          : MPI_UNEQUAL;
    return MPI_SUCCESS;
}

int MPI_Group_union(MPI_Group first, MPI_Group second, MPI_Group *made)
{
    const members *one = members_of(first), *other = members_of(second);
    if (!one || !other)
        return PMPI_Group_union(first, second, made);
    combine(*one, *other, combination::all, made);
    return MPI_SUCCESS;
}

int MPI_Group_intersection(MPI_Group first, MPI_Group second, MPI_Group *made)
{
    const members *one = members_of(first), *other = members_of(second);
    if (!one || !other)
        return PMPI_Group_intersection(first, second, made);
    combine(*one, *other, combination::both, made);
    return MPI_SUCCESS;
}

int MPI_Group_difference(MPI_Group first, MPI_Group second, MPI_Group *made)
{
    const members *one = members_of(first), *other = members_of(second);
    if (!one || !other)
        return PMPI_Group_difference(first, second, made);
    combine(*one, *other, combination::first_alone, made);
    return MPI_SUCCESS;
}

int MPI_Group_incl(MPI_Group of, int n, const int ranks[], MPI_Group *made)
{
    const members *all = members_of(of);
    if (!all)
        return PMPI_Group_incl(of, n, ranks, made);
    return include(*all, std::vector(ranks, ranks + n), made);
}

int MPI_Group_excl(MPI_Group of, int n, const int ranks[], MPI_Group *made)
{
    const members *all = members_of(of);
    if (!all)
        return PMPI_Group_excl(of, n, ranks, made);
    return exclude(*all, std::vector(ranks, ranks + n), made);
}

int MPI_Group_range_incl(MPI_Group of, int n, int ranges[][3], MPI_Group *made)
{
    const members *all = members_of(of);
    if (!all)
        return PMPI_Group_range_incl(of, n, ranges, made);
    std::vector<int> indices;
    return expand(n, ranges, all->size(), indices) ? include(*all, indices, made)
                                                   : fail(MPI_ERR_RANK);
}

int MPI_Group_range_excl(MPI_Group of, int n, int ranges[][3], MPI_Group *made)
{
    const members *all = members_of(of);
    if (!all)
        return PMPI_Group_range_excl(of, n, ranges, made);
    std::vector<int> indices;
    return expand(n, ranges, all->size(), indices) ? exclude(*all, indices, made)
                                                   : fail(MPI_ERR_RANK);
}

int MPI_Group_free(MPI_Group *handle)
{
    if (!layer::find_group(*handle))
        return PMPI_Group_free(handle);
    layer::instance().free_group(*handle);
    *handle = MPI_GROUP_NULL;
    return MPI_SUCCESS;
}

#pragma GCC visibility pop
} // extern "C"

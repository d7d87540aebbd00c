/* SPDX-License-Identifier: BSD-3-Clause */
#include "processes.h"

#include <algorithm>

namespace zc::migrate {

namespace {

bool is_same(MPI_Group one, MPI_Group other)
{
    int same = MPI_UNEQUAL;
    PMPI_Group_compare(one, other, &same);
    return same == MPI_IDENT;
}

} // namespace

void processes::link(MPI_Comm world)
{
    forget_ranks();
    int size = 0;
    PMPI_Comm_size(world, &size);
    PMPI_Comm_group(world, &all_);
    ranks_.resize(static_cast<std::size_t>(size));
    for (int rank = 0; rank < size; rank++)
        PMPI_Group_incl(all_, 1, &rank, &ranks_[static_cast<std::size_t>(rank)]);
}

void processes::forget_ranks()
{
    for (MPI_Group &one : ranks_)
        PMPI_Group_free(&one);
    ranks_.clear();
    if (all_ != MPI_GROUP_NULL)
        PMPI_Group_free(&all_);
    all_ = MPI_GROUP_NULL;
}

void processes::forget()
{
    forget_ranks();
    for (MPI_Group &one : strangers_)
        PMPI_Group_free(&one);
    strangers_.clear();
}

int processes::find(MPI_Group one, std::size_t &begin)
{
    for (std::size_t tried = 0; tried < ranks_.size(); tried++) {
        const std::size_t rank = (begin + tried) % ranks_.size();
        if (is_same(one, ranks_[rank])) {
            begin = rank + 1;
            return static_cast<int>(rank);
        }
    }
    for (std::size_t i = 0; i < strangers_.size(); i++)
        if (is_same(one, strangers_[i]))
            return stranger(i);
    int first = 0;
    MPI_Group kept;
    PMPI_Group_incl(one, 1, &first, &kept);
    strangers_.push_back(kept);
    return stranger(strangers_.size() - 1);
}

/**
 * Without a word to others: who made a communicator, and out of what, may differ from member to
 * member (MPI_Intercomm_create() of a split and MPI_COMM_SELF), so that no process knows whether
 * the others would take part in asking. Members are compared one by one, as
 * MPI_Group_translate_ranks() of MPICH 4.0.2 takes processes of different worlds for each other
 * (it keeps 32 of the 64 bits of their numbers).
 */
members processes::of(MPI_Group group)
{
    const std::lock_guard guard(mutex_);
    int size = 0;
    PMPI_Group_size(group, &size);
    members found(static_cast<std::size_t>(size));
    std::size_t begin = 0; /* the next rank, most often */
    for (int i = 0; i < size; i++) {
        MPI_Group one;
        PMPI_Group_incl(group, 1, &i, &one);
        found[static_cast<std::size_t>(i)] = find(one, begin);
        PMPI_Group_free(&one);
    }
    return found;
}

members processes::of(MPI_Comm real, bool remote)
{
    MPI_Group group;
    if (remote)
        PMPI_Comm_remote_group(real, &group);
    else
        PMPI_Comm_group(real, &group);
    members found = of(group);
    PMPI_Group_free(&group);
    return found;
}

MPI_Group processes::group(const members &which, MPI_Comm real, const members &in)
{
    std::vector<int> places;
    for (int one : which)
        places.push_back(static_cast<int>(std::ranges::find(in, one) - in.begin()));
    MPI_Group all, made;
    PMPI_Comm_group(real, &all);
    PMPI_Group_incl(all, static_cast<int>(places.size()), places.data(), &made);
    PMPI_Group_free(&all);
    return made;
}

MPI_Group processes::group(const members &which) const
{
    if (std::ranges::any_of(which, [](int one) { return one < 0; }))
        return MPI_GROUP_NULL;
    MPI_Group made;
    PMPI_Group_incl(all_, static_cast<int>(which.size()), which.data(), &made);
    return made;
}

} // namespace zc::migrate

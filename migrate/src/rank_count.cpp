/* SPDX-License-Identifier: BSD-3-Clause */
#include "rank_count.h"

#include <cerrno>
#include <new>
#include <sys/mman.h>

#include "error.h"

namespace zc::migrate {

rank_count::rank_count(rank_count *whole) : whole_(whole)
{
    void *const shared =
        mmap(nullptr, sizeof *shared_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        throw_errno(errno, "mmap");
    shared_ = new (shared) std::atomic<int>(0);
}

rank_count::~rank_count()
{
    munmap(shared_, sizeof *shared_);
}

void rank_count::set_own(int ranks) noexcept
{
    add(ranks - own_);
    own_ = ranks;
}

void rank_count::add(int ranks) noexcept
{
    shared_->fetch_add(ranks);
    if (whole_)
        whole_->add(ranks);
}

} // namespace zc::migrate

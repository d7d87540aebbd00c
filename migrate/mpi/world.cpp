/* SPDX-License-Identifier: BSD-3-Clause */
#include "world.h"

#include <algorithm>
#include <climits>
#include <numeric>

#include "returned_errors.h"
#include "roll_call.h"

namespace zc::migrate {

namespace {

constexpr int kLinkTag = 7701;

} // namespace

void part(MPI_Comm &comm)
{
#ifdef OPEN_MPI
    PMPI_Comm_free(&comm);
#else
    PMPI_Comm_disconnect(&comm);
#endif
}

void world::disconnect()
{
    part(user);
    part(ours);
}

namespace {

MPI_Request never_complete = MPI_REQUEST_NULL;

} // namespace

void make_progress()
{
    if (never_complete == MPI_REQUEST_NULL)
        PMPI_Grequest_start([](void *, MPI_Status *) { return int{MPI_SUCCESS}; },
                            [](void *) { return int{MPI_SUCCESS}; },
                            [](void *, int) { return int{MPI_SUCCESS}; }, nullptr, &never_complete);
    int done;
    PMPI_Test(&never_complete, &done, MPI_STATUS_IGNORE);
}

void end_progress()
{
    if (never_complete == MPI_REQUEST_NULL)
        return;
    PMPI_Grequest_complete(never_complete);
    PMPI_Wait(&never_complete, MPI_STATUS_IGNORE);
}

namespace {

/** The lowest rank that does not leave. */
int first_to_stay(const std::vector<int> &leavers)
{
    int rank = 0;
    while (std::ranges::count(leavers, rank) > 0)
        rank++;
    return rank;
}

/** Collective: @mine and the group behind @remote, a rank of @bridge, are one; @mine is given up.
 */
void join(MPI_Comm &mine, MPI_Comm bridge, int remote, bool follows)
{
    MPI_Comm between, both;
    PMPI_Intercomm_create(mine, 0, bridge, remote, kLinkTag, &between);
    PMPI_Intercomm_merge(between, follows, &both);
    part(between);
    part(mine);
    mine = both;
}

/** Collective: all leavers and their successors, two groups at a time. A leaver is the first of
 *  each, and finds the other in @bridge. */
MPI_Comm join_pairs(const growth &how, MPI_Comm bridge)
{
    const int all = static_cast<int>(how.leavers.size());
    MPI_Comm joined;
    PMPI_Comm_dup(how.line, &joined);
    for (int width = 1; width < all; width *= 2) {
        const int first = how.index / (2 * width) * (2 * width);
        const int second = first + width;
        if (second >= all)
            continue; /* alone in this round */
        const bool follows = how.index >= second;
        join(joined, bridge, how.leavers[static_cast<std::size_t>(follows ? first : second)],
             follows);
    }
    return joined;
}

} // namespace

world grow(const growth &how)
{
    const bool leaves = how.old != nullptr && how.index >= 0;
    const bool stays = how.old != nullptr && how.index < 0;
    const MPI_Comm bridge = how.old ? how.old->ours : MPI_COMM_NULL;
    MPI_Comm grown = MPI_COMM_NULL, staying = MPI_COMM_NULL;
    if (!stays)
        grown = join_pairs(how, bridge);
    if (how.old)
        PMPI_Comm_split(bridge, stays ? 0 : MPI_UNDEFINED, how.rank, &staying);
    if (stays) {
        join(staying, bridge, how.leavers.front(), false);
        grown = staying;
    } else if (static_cast<int>(how.leavers.size()) < how.size) {
        join(grown, bridge, first_to_stay(how.leavers), true);
    }
    world fresh;
    PMPI_Comm_split(grown, leaves ? MPI_UNDEFINED : 0, how.rank, &fresh.ours);
    part(grown);
    if (fresh.ours != MPI_COMM_NULL) {
        PMPI_Comm_dup(fresh.ours, &fresh.user);
        PMPI_Comm_rank(fresh.ours, &fresh.rank);
        PMPI_Comm_size(fresh.ours, &fresh.size);
    }
    return fresh;
}

void wait_gently(MPI_Request &request)
{
    /* MPICH has the handler of its own world deal with errors of nonblocking collectives. */
    const returned_errors_of_communicator returned(MPI_COMM_WORLD);
    pause pause;
    for (int done = 0;;) {
        if (const int code = PMPI_Test(&request, &done, MPI_STATUS_IGNORE); code != MPI_SUCCESS)
            roll_call::find_lost(words_of(code));
        if (done)
            return;
        roll_call::look();
        pause.rest();
    }
}

namespace {

/** The beginning of a text of any length, which mostly is all of it: so that ranks wait for each
 *  other once, and not for the length first. */
struct beginning {
    std::size_t length = 0;
    char text[1016] = "";

    beginning() = default;
    explicit beginning(const std::string &whole) : length(whole.size())
    {
        whole.copy(text, sizeof text);
    }
    std::size_t here() const { return std::min(length, sizeof text); }
    std::size_t rest() const { return length - here(); }
};

} // namespace

void share(MPI_Comm comm, int root, std::string &text)
{
    MPI_Request request;
    beginning begun(text);
    PMPI_Ibcast(&begun, sizeof begun, MPI_BYTE, root, comm, &request);
    wait_gently(request);
    text.resize(begun.length);
    std::copy_n(begun.text, begun.here(), text.begin());
    if (begun.rest() > 0) {
        PMPI_Ibcast(text.data() + begun.here(), static_cast<int>(begun.rest()), MPI_CHAR, root,
                    comm, &request);
        wait_gently(request);
    }
}

std::string agree(MPI_Comm comm, const std::string &complaint)
{
    int rank;
    PMPI_Comm_rank(comm, &rank);
    const int first = least(comm, {complaint.empty() ? INT_MAX : rank})[0];
    if (first == INT_MAX)
        return "";
    std::string text = complaint;
    share(comm, first, text);
    return text;
}

std::vector<std::string> gather(MPI_Comm comm, const std::string &text)
{
    int size;
    PMPI_Comm_size(comm, &size);
    const beginning mine(text);
    std::vector<beginning> begun(static_cast<std::size_t>(size));
    MPI_Request request;
    PMPI_Iallgather(&mine, sizeof mine, MPI_BYTE, begun.data(), sizeof mine, MPI_BYTE, comm,
                    &request);
    wait_gently(request);
    std::vector<std::string> texts;
    std::vector<int> lengths, places;
    int all = 0;
    for (const beginning &one : begun) {
        texts.emplace_back(one.text, one.here());
        lengths.push_back(static_cast<int>(one.rest()));
        places.push_back(all);
        all += lengths.back();
    }
    if (all == 0)
        return texts;
    std::string rests(static_cast<std::size_t>(all), '\0');
    PMPI_Iallgatherv(text.data() + mine.here(), static_cast<int>(mine.rest()), MPI_CHAR,
                     rests.data(), lengths.data(), places.data(), MPI_CHAR, comm, &request);
    wait_gently(request);
    for (std::size_t rank = 0; rank < texts.size(); rank++)
        texts[rank].append(rests, static_cast<std::size_t>(places[rank]),
                           static_cast<std::size_t>(lengths[rank]));
    return texts;
}

namespace {

template <typename Value>
std::vector<Value> reduce(MPI_Comm comm, const std::vector<Value> &values, MPI_Datatype type,
                          MPI_Op op)
{
    std::vector<Value> result(values.size());
    MPI_Request request;
    PMPI_Iallreduce(values.data(), result.data(), static_cast<int>(values.size()), type, op, comm,
                    &request);
    wait_gently(request);
    return result;
}

} // namespace

std::vector<int> least(MPI_Comm comm, const std::vector<int> &values)
{
    return reduce(comm, values, MPI_INT, MPI_MIN);
}

std::vector<double> greatest(MPI_Comm comm, std::vector<double> values)
{
    return reduce(comm, values, MPI_DOUBLE, MPI_MAX);
}

std::vector<double> total(MPI_Comm comm, std::vector<double> values)
{
    return reduce(comm, values, MPI_DOUBLE, MPI_SUM);
}

} // namespace zc::migrate

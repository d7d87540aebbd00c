/* SPDX-License-Identifier: BSD-3-Clause */
#include "world.h"

#include <algorithm>
#include <climits>
#include <cstdint>
#include <numeric>
#include <set>

#include "process.h"
#include "returned_errors.h"
#include "roll_call.h"

namespace zc::migrate {

namespace {

constexpr int kLinkTag = 7701, kConnectTag = 7702, kPartTag = 7704;

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

/** The ranks that do not leave. */
std::vector<int> stayers(const growth &how)
{
    std::vector<int> all;
    for (int rank = 0; rank < how.size; rank++)
        if (std::ranges::count(how.leavers, rank) == 0)
            all.push_back(rank);
    return all;
}

/** Ends the job at an error of a communicator by which the new world is made, as there is no way
 * back; MPI's own handler would not tell what was being done. */
class linking {
  public:
    linking() { PMPI_Comm_create_errhandler(end_at_error, &handler_); }
    ~linking() { PMPI_Errhandler_free(&handler_); }
    linking(const linking &) = delete;
    linking &operator=(const linking &) = delete;

    /** Returns @comm. */
    MPI_Comm watch(MPI_Comm comm) const
    {
        if (comm != MPI_COMM_NULL)
            PMPI_Comm_set_errhandler(comm, handler_);
        return comm;
    }
    /** It goes on with MPI's own. */
    static void leave(MPI_Comm comm)
    {
        if (comm != MPI_COMM_NULL)
            PMPI_Comm_set_errhandler(comm, MPI_ERRORS_ARE_FATAL);
    }

  private:
    static void end_at_error(MPI_Comm *, int *code, ...) { end_unlinked(*code); }

    MPI_Errhandler handler_ = MPI_ERRHANDLER_NULL;
};

/** Collective: @mine and the group behind @remote, a rank of @bridge. */
MPI_Comm link(const linking &all, MPI_Comm mine, MPI_Comm bridge, int remote)
{
    MPI_Comm between;
    PMPI_Intercomm_create(mine, 0, bridge, remote, kLinkTag, &between);
    return all.watch(between);
}

/** Collective: both groups of @between are one; it and @mine, the nearer of them, are given up. */
void merge(const linking &all, MPI_Comm &mine, MPI_Comm between, bool follows)
{
    MPI_Comm both;
    PMPI_Intercomm_merge(between, follows, &both);
    part(between);
    part(mine);
    mine = all.watch(both);
}

/** Collective: all leavers and their successors, two groups at a time. A leaver is the first of
 *  each, and finds the other in @bridge. */
MPI_Comm join_pairs(const linking &all, const growth &how, MPI_Comm bridge)
{
    const int pairs = static_cast<int>(how.leavers.size());
    MPI_Comm joined = all.watch(how.line);
    for (int width = 1; width < pairs; width *= 2) {
        const int first = how.index / (2 * width) * (2 * width);
        const int second = first + width;
        if (second >= pairs)
            continue; /* alone in this round */
        const bool follows = how.index >= second;
        const int remote = how.leavers[static_cast<std::size_t>(follows ? first : second)];
        merge(all, joined, link(all, joined, bridge, remote), follows);
    }
    return joined;
}

/** Where the successor of leavers[@index] is among the pairs, which begin with their leaver. */
int place_of_successor(std::size_t index)
{
    return static_cast<int>(2 * index + 1);
}

/** Where the ranks of the new world are when all have joined: those who stay, then the pairs. */
std::vector<int> places(const growth &how, const std::vector<int> &staying)
{
    std::vector<int> of(static_cast<std::size_t>(how.size));
    for (std::size_t i = 0; i < staying.size(); i++)
        of[static_cast<std::size_t>(staying[i])] = static_cast<int>(i);
    for (std::size_t i = 0; i < how.leavers.size(); i++)
        of[static_cast<std::size_t>(how.leavers[i])] =
            static_cast<int>(staying.size()) + place_of_successor(i);
    return of;
}

/** Whom @rank of @size is to be connected with: all of a small world, else those with which it
 *  exchanges messages in recursive doubling, Bruck's algorithm and dissemination. */
std::set<int> neighbours(int rank, int size)
{
    constexpr int kSmall = 32;
    std::set<int> all;
    if (size <= kSmall)
        for (int other = 0; other < size; other++)
            all.insert(other);
    for (int distance = 1; distance < size; distance *= 2)
        for (int other :
             {rank ^ distance, (rank + distance) % size, (rank - distance + size) % size})
            if (other < size)
                all.insert(other);
    all.erase(rank);
    return all;
}

/**
 * Collective over the new world: the successors are connected with the ranks that they are going to
 * need. A connection is made by the first message; those of collective operations come one after
 * the other, and each holds the next up: here they are made at the same time. @between links
 * those who stay with the pairs. @pairs is, in a successor, the communicator of the pairs.
 */
void connect(MPI_Comm between, MPI_Comm pairs, const growth &how, const std::vector<int> &staying)
{
    const bool stays = how.old != nullptr;
    std::vector<MPI_Request> requests;
    const auto exchange = [&](MPI_Comm comm, int place) {
        MPI_Request received, sent;
        PMPI_Irecv(nullptr, 0, MPI_BYTE, place, kConnectTag, comm, &received);
        PMPI_Isend(nullptr, 0, MPI_BYTE, place, kConnectTag, comm, &sent);
        requests.insert(requests.end(), {received, sent});
    };
    for (int other : neighbours(how.rank, how.size)) {
        const auto leaver = std::ranges::find(how.leavers, other);
        if (leaver != how.leavers.end())
            exchange(stays ? between : pairs,
                     place_of_successor(static_cast<std::size_t>(leaver - how.leavers.begin())));
        else if (!stays)
            exchange(between,
                     static_cast<int>(std::ranges::find(staying, other) - staying.begin()));
    }
    /* Errors of several requests are for the handler of MPI_COMM_WORLD. */
    const returned_errors_of_communicator returned(MPI_COMM_WORLD);
    if (const int code =
            PMPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
        code != MPI_SUCCESS)
        end_unlinked(code);
}

} // namespace

void end_unlinked(int code)
{
    end_job(-1, "the ranks are not linked up with the successors: a process died, as it seems: " +
                    words_of(code));
}

MPI_Comm part_of(MPI_Comm comm, const std::vector<int> &ranks)
{
    MPI_Comm made = MPI_COMM_NULL;
    if (ranks.size() == 1) {
        PMPI_Comm_dup(MPI_COMM_SELF, &made);
        return made;
    }
    /* Of that communicator: MPICH 4.0.2 wants it to have been asked for its group. */
    MPI_Group all, some;
    PMPI_Comm_group(comm, &all);
    PMPI_Group_incl(all, static_cast<int>(ranks.size()), ranks.data(), &some);
    PMPI_Comm_create_group(comm, some, kPartTag, &made);
    PMPI_Group_free(&some);
    PMPI_Group_free(&all);
    return made;
}

world grow(const growth &how)
{
    const bool leaves = how.old != nullptr && how.index >= 0;
    const bool stays = how.old != nullptr && how.index < 0;
    const linking all;
    const MPI_Comm bridge = all.watch(how.old ? how.old->ours : MPI_COMM_NULL);
    const std::vector<int> staying = stayers(how);
    /* Those who stay make theirs while the leavers join their successors. */
    MPI_Comm grown = stays ? all.watch(part_of(bridge, staying)) : join_pairs(all, how, bridge);
    if (!staying.empty()) {
        MPI_Comm between = link(all, grown, bridge, stays ? how.leavers.front() : staying.front());
        if (!leaves)
            connect(between, grown, how, staying);
        merge(all, grown, between, !stays);
    }
    world fresh;
    if (!leaves)
        fresh.ours = part_of(grown, places(how, staying));
    part(grown);
    linking::leave(bridge);
    if (all.watch(fresh.ours) != MPI_COMM_NULL) {
        PMPI_Comm_dup(fresh.ours, &fresh.user); /* which has the handler, too */
        PMPI_Comm_rank(fresh.ours, &fresh.rank);
        PMPI_Comm_size(fresh.ours, &fresh.size);
    }
    linking::leave(fresh.ours);
    linking::leave(fresh.user);
    return fresh;
}

void wait_gently(MPI_Request &request, MPI_Comm over)
{
    /* MPICH has the handler of its own world deal with errors of some nonblocking collectives. */
    const returned_errors_of_communicator returned(MPI_COMM_WORLD), returned_over(over);
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

void carry_out(MPI_Comm over, const std::function<int(MPI_Request *)> &start)
{
    MPI_Request request = MPI_REQUEST_NULL;
    const returned_errors_of_communicator returned(over);
    if (const int code = start(&request); code != MPI_SUCCESS)
        roll_call::find_lost(words_of(code));
    wait_gently(request, over);
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
    beginning begun(text);
    carry_out(comm, [&](MPI_Request *request) {
        return PMPI_Ibcast(&begun, sizeof begun, MPI_BYTE, root, comm, request);
    });
    text.resize(begun.length);
    std::copy_n(begun.text, begun.here(), text.begin());
    if (begun.rest() > 0)
        carry_out(comm, [&](MPI_Request *request) {
            return PMPI_Ibcast(text.data() + begun.here(), static_cast<int>(begun.rest()), MPI_CHAR,
                               root, comm, request);
        });
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
    carry_out(comm, [&](MPI_Request *request) {
        return PMPI_Iallgather(&mine, sizeof mine, MPI_BYTE, begun.data(), sizeof mine, MPI_BYTE,
                               comm, request);
    });
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
    carry_out(comm, [&](MPI_Request *request) {
        return PMPI_Iallgatherv(text.data() + mine.here(), static_cast<int>(mine.rest()), MPI_CHAR,
                                rests.data(), lengths.data(), places.data(), MPI_CHAR, comm,
                                request);
    });
    for (std::size_t rank = 0; rank < texts.size(); rank++)
        texts[rank].append(rests, static_cast<std::size_t>(places[rank]),
                           static_cast<std::size_t>(lengths[rank]));
    return texts;
}

std::vector<std::string> gather_at_first(MPI_Comm comm, const std::string &text)
{
    int size, rank;
    PMPI_Comm_size(comm, &size);
    PMPI_Comm_rank(comm, &rank);
    const std::uint64_t mine = text.size();
    std::vector<std::uint64_t> sizes(static_cast<std::size_t>(size));
    carry_out(comm, [&](MPI_Request *request) {
        return PMPI_Iallgather(&mine, 1, MPI_UINT64_T, sizes.data(), 1, MPI_UINT64_T, comm,
                               request);
    });
    const std::uint64_t all = std::accumulate(sizes.begin(), sizes.end(), std::uint64_t{0});
    std::vector<std::string> texts(rank == 0 ? sizes.size() : 0);
    if (all == 0 || all > INT_MAX)
        return texts;
    std::vector<int> lengths(sizes.begin(), sizes.end()), places(sizes.size());
    std::exclusive_scan(lengths.begin(), lengths.end(), places.begin(), 0);
    std::string told(rank == 0 ? all : 0, '\0');
    carry_out(comm, [&](MPI_Request *request) {
        return PMPI_Igatherv(text.data(), static_cast<int>(mine), MPI_CHAR, told.data(),
                             lengths.data(), places.data(), MPI_CHAR, 0, comm, request);
    });
    for (std::size_t at = 0; at < texts.size(); at++)
        texts[at] = told.substr(static_cast<std::size_t>(places[at]), sizes[at]);
    return texts;
}

namespace {

template <typename Value>
std::vector<Value> reduce(MPI_Comm comm, const std::vector<Value> &values, MPI_Datatype type,
                          MPI_Op op)
{
    std::vector<Value> result(values.size());
    carry_out(comm, [&](MPI_Request *request) {
        return PMPI_Iallreduce(values.data(), result.data(), static_cast<int>(values.size()), type,
                               op, comm, request);
    });
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

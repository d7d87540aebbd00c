/* SPDX-License-Identifier: BSD-3-Clause */
#include "spawn.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <poll.h>
#include <unistd.h>
#include <vector>

#include "error.h"
#include "hdf5_loading.h"
#include "keeper.h"
#include "mpi_connection.h"
#include "returned_errors.h"
#include "watchdog.h"
#include "world.h"

namespace zc::migrate {

namespace {

#ifdef OPEN_MPI
constexpr bool kEachItsOwn = true; /* each successor has a launcher */
#else
constexpr bool kEachItsOwn = false; /* those of a host have one */
#endif

/** zcm-launch, where libzcm or the user has it. */
std::string find_tool(const settings &chosen)
{
    if (!chosen.launcher.empty())
        return chosen.launcher;
    Dl_info of_library;
    std::vector<std::filesystem::path> places;
    if (dladdr(reinterpret_cast<const void *>(&find_tool), &of_library) && of_library.dli_fname) {
        std::error_code none;
        const std::filesystem::path library =
            std::filesystem::canonical(of_library.dli_fname, none).parent_path();
        places = {library / "../bin/zcm-launch", library / "../../bin/zcm-launch"};
    }
    places.emplace_back(ZCM_LAUNCH);
    for (const std::filesystem::path &one : places)
        if (access(one.c_str(), X_OK) == 0)
            return one.lexically_normal();
    return "";
}

/** MPI's info for what is to be started in @directory on @host. */
MPI_Info info_of(const place &host, const std::string &directory)
{
    MPI_Info info;
    PMPI_Info_create(&info);
    PMPI_Info_set(info, "host", host.name.c_str());
#ifdef OPEN_MPI
    /* To add one that it knows would end its daemon there; one that it does not has to be. */
    if (host.is_new)
        PMPI_Info_set(info, "add-host", host.name.c_str());
#endif
    PMPI_Info_set(info, "wdir", directory.c_str());
    return info;
}

MPI_Comm spawn(const command &command, const place &host)
{
    /* Through env(1): not every launcher hands our environment on. */
    std::vector<std::string> words = inherited_environment();
    words.emplace_back(std::string(kSuccessorVariable) + "=1");
    words.push_back(command.program);
    words.insert(words.end(), command.arguments.begin(), command.arguments.end());
    std::vector<char *> arguments;
    for (std::string &word : words)
        arguments.push_back(word.data());
    arguments.push_back(nullptr);

    MPI_Info info = info_of(host, command.directory);
    const returned_errors_of_communicator returned(MPI_COMM_SELF);
    MPI_Comm between = MPI_COMM_NULL;
    int failed = MPI_SUCCESS;
    const int code = PMPI_Comm_spawn("/usr/bin/env", arguments.data(), 1, info, 0, MPI_COMM_SELF,
                                     &between, &failed);
    PMPI_Info_free(&info);
    if (code != MPI_SUCCESS || failed != MPI_SUCCESS || between == MPI_COMM_NULL) {
        throw error(EIO, "cannot start a successor on " + host.name + ": " +
                             words_of(code != MPI_SUCCESS ? code : failed));
    }
    return between;
}

#ifdef OPEN_MPI
/**
 * By MPI_Comm_spawn, which does not wait for MPI there: it starts zcm-launch, one for each
 * successor, which takes mpirun's number for that and is its keeper (keeper.h).
 */
class launch_by_spawn final : public launch_request {
  public:
    launch_by_spawn(std::string tool, place host, double limit_s)
        : tool_(std::move(tool)), host_(std::move(host)), limit_s_(limit_s)
    {
    }
    std::string ask(const std::string &host, const std::vector<calling_card> &leavers) override
    {
        const watchdog guard(limit_s_, "mpirun has started nothing on " + host + " for " +
                                           std::to_string(static_cast<int>(limit_s_)) + " s");
        /* The successor goes to its directory itself, and can say that there is none. */
        MPI_Info info = info_of(host_, "/");
        PMPI_Info_set(info, "ompi_non_mpi", "true");
        /* Not among its arguments, which everyone can read. */
        std::string variable = std::string(kCallVariable) + "=";
        variable += leavers.front().to_text(MPI_MAX_INFO_VAL - 2 - variable.size());
        PMPI_Info_set(info, "env", variable.c_str());
        const returned_errors_of_communicator returned(MPI_COMM_SELF);
        MPI_Comm none = MPI_COMM_NULL;
        int failed = MPI_SUCCESS;
        const int code = PMPI_Comm_spawn(tool_.c_str(), MPI_ARGV_NULL, 1, info, 0, MPI_COMM_SELF,
                                         &none, &failed);
        PMPI_Info_free(&info);
        return code != MPI_SUCCESS || failed != MPI_SUCCESS
                   ? words_of(code != MPI_SUCCESS ? code : failed)
                   : "";
    }
    bool answer(const std::string &, std::string &problem) override
    {
        problem.clear(); /* it was done when ask() returned */
        return true;
    }

  private:
    const std::string tool_;
    const place host_;
    const double limit_s_;
};
#endif

MPI_Info limited(double limit_s)
{
    MPI_Info info;
    PMPI_Info_create(&info);
    PMPI_Info_set(info, "timeout",
                  std::to_string(std::max(1, static_cast<int>(std::ceil(limit_s)))).c_str());
    return info;
}

/** Rank 0 has compared what it heard of this process when that became the rank, and not at all
 * where the program itself has asked for the move. */
void require_same_libraries(const std::string &facts, const std::string &host)
{
    const std::string why = why_other_libraries(loaded_libraries::of_this_process(),
                                                preflight::find_in(facts).libraries, host);
    if (!why.empty())
        throw error(ENOEXEC, why);
}

} // namespace

start_order order_of(const command &command)
{
    return {command.program, command.arguments, command.directory, inherited_environment(), {}};
}

succession::succession(const settings &chosen, const command &command, wire *launcher, place host,
                       bool is_started)
    : settings_(chosen), command_(command), host_(std::move(host)), is_started_(is_started)
{
    const std::string tool = find_tool(chosen);
#ifdef OPEN_MPI
    (void)launcher; /* a keeper, which starts no other */
    if (tool.empty())
        complain(-1, "zcm-launch is not there: a successor that dies ends the job");
    else
        by_ = std::make_unique<launch_by_spawn>(tool, host_, chosen.start_s);
#else
    if (launcher)
        by_ = std::make_unique<launch_by_launcher>(*launcher);
    const process_manager manager = process_manager::of_this_process();
    if (!launcher && manager.fd() >= 0 && !tool.empty())
        by_ = std::make_unique<launch_by_manager>(manager, tool);
    if (!by_)
        complain(
            -1,
            std::string(tool.empty() ? "zcm-launch is not there"
                                     : "the ranks have not been started by MPICH's mpiexec") +
                ": MPI_Comm_spawn is used, and a successor that ends before MPI_Init ends the job");
#endif
}

std::string succession::invite(std::uint64_t bytes)
{
    if (!by_)
        return "";
    start_ = std::make_unique<successor_start>(host_.name, bytes);
    return start_->invitation();
}

/** MPI finds first that a process has died; its launcher says a moment later how, or is gone, too.
 */
std::string succession::why_not_connected(wire &launcher, const std::string &problem) const
{
    constexpr double kFirst = 0.5;
    pause pause;
    for (const double begin = seconds(); seconds() - begin < kFirst; pause.rest()) {
        while (const auto said = launcher.poll())
            if (said->contains("ended"))
                return "the successor on " + host_.name + " " + said->value("ended", "");
        if (launcher.is_closed())
            return "the launcher on " + host_.name + " has ended";
        make_progress();
    }
    return "cannot connect to the successor on " + host_.name + ": " + problem;
}

/**
 * MPI's own limits are for each step of it, and the last has none; a successor that is stopped
 * there is ended, and then MPI finds that. Open MPI does not, and has no limits.
 */
MPI_Comm succession::connect(const std::string &port, wire &launcher) const
{
    const returned_errors_of_communicator returned(MPI_COMM_SELF);
    const double limit_s = settings_.start_s + 5;
#ifdef OPEN_MPI
    (void)launcher;
    const watchdog limit(limit_s, "the successor on " + host_.name +
                                      " was there, but has not connected within " +
                                      std::to_string(static_cast<int>(limit_s)) + " s");
#else
    const watchdog limit(limit_s, [&launcher] { launcher.shut_down(); });
#endif
    MPI_Info info = limited(settings_.start_s);
    MPI_Comm between = MPI_COMM_NULL;
    const int code = PMPI_Comm_connect(port.c_str(), info, 0, MPI_COMM_SELF, &between);
    PMPI_Info_free(&info);
    if (code != MPI_SUCCESS || between == MPI_COMM_NULL)
        throw error(EIO, why_not_connected(launcher, words_of(code)));
    return between;
}

std::unique_ptr<departure> succession::start(const std::vector<std::string> &all, greeting hello)
{
    const double begin = seconds();
    std::unique_ptr<wire> launcher;
    MPI_Comm between = MPI_COMM_NULL;
    if (start_) {
        start_order order = order_of(command_);
        pause pause;
        auto [line, port, facts] =
            start_->run(kEachItsOwn ? std::vector{start_->invitation()} : all, std::move(order),
                        is_started_ ? nullptr : by_.get(), settings_.start_s, [&pause] {
                            make_progress();
                            pause.rest();
                        });
        if (hello.moved && settings_.libraries_compared())
            require_same_libraries(facts, host_.name);
        if (!line->send({{"accept", true}}))
            throw error(EIO, "the launcher on " + host_.name + " has ended");
        hello.bytes = start_->bytes_of(all);
        between = connect(port, *line);
        launcher = std::move(line);
    } else {
        /* MPI_Comm_spawn never returns if the child ends before MPI_Init. */
        const watchdog guard(settings_.start_s,
                             "no successor on " + host_.name + " after " +
                                 std::to_string(static_cast<int>(settings_.start_s)) +
                                 " s: " + command_.program + " ended before MPI_Init there?");
        between = spawn(command_, host_);
    }
    auto line = std::make_unique<lifeline>(
        std::make_unique<mpi_connection>(between, false, std::move(launcher)), false,
        settings_.timeout_s);
    hello.age_s += seconds() - begin; /* a start may take seconds */
    return std::make_unique<departure>(settings_, std::move(line), hello, ms_since(begin));
}

/* ---- the successor ---- */

std::unique_ptr<wire> own_launcher()
{
    const char *value = std::getenv(kSuccessorVariable);
    if (!value || std::strncmp(value, "fd:", 3) != 0)
        return nullptr;
    return std::make_unique<wire>(static_cast<int>(std::strtol(value + 3, nullptr, 10)));
}

namespace {

/** The ranks may compute for long before they meet; until then this process has nothing to do.
 * Returns the card of the launcher, which has told it before. */
std::string await_leaver(wire &launcher)
{
    for (std::string card;;) {
        while (const auto said = launcher.poll()) {
            if (said->contains("accept"))
                return card;
            card = said->value("card", card);
        }
        if (launcher.is_closed())
            throw error(EPIPE, "the launcher is gone");
        pollfd event{launcher.fd(), POLLIN, 0};
        poll(&event, 1, -1);
    }
}

} // namespace

meeting_of_leaver meet_leaver(wire *launcher, const std::string &facts, double limit_s)
{
    MPI_Comm parent = MPI_COMM_NULL;
    PMPI_Comm_get_parent(&parent);
    if (!launcher) {
        if (parent == MPI_COMM_NULL)
            throw error(EINVAL, "has neither a launcher nor a parent");
        return {parent, ""};
    }
    const returned_errors_of_communicator returned(MPI_COMM_SELF);
    char port[MPI_MAX_PORT_NAME];
    int code = PMPI_Open_port(MPI_INFO_NULL, port);
    if (code != MPI_SUCCESS)
        throw error(EIO, "cannot open a port: " + words_of(code));
    if (!launcher->send({{"port", port}, {"facts", facts}}))
        throw error(EPIPE, "the launcher is gone");
    load_hdf5_ahead(); /* nothing waits for this process yet */
    std::string card = await_leaver(*launcher);
    MPI_Info info = limited(limit_s);
    MPI_Comm between = MPI_COMM_NULL;
    code = PMPI_Comm_accept(port, info, 0, MPI_COMM_SELF, &between);
    PMPI_Info_free(&info);
    PMPI_Close_port(port);
    if (code != MPI_SUCCESS)
        throw error(EIO, "the predecessor has not connected: " + words_of(code));
    return {between, std::move(card)};
}

void hear_go(wire *launcher, int rank)
{
    if (launcher)
        launcher->send({{"rank", rank}});
}

} // namespace zc::migrate

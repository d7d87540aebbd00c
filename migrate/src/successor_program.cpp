/* SPDX-License-Identifier: BSD-3-Clause */
#include "successor_program.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <memory>
#include <nlohmann/json.hpp>
#include <poll.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "error.h"

namespace zc::migrate {

using nlohmann::json;

namespace {

constexpr double kAnswer = 20; /* seconds for who wants successors */

std::vector<char *> pointers(std::vector<std::string> &words)
{
    std::vector<char *> all;
    all.reserve(words.size() + 1);
    for (std::string &word : words)
        all.push_back(word.data());
    all.push_back(nullptr);
    return all;
}

} // namespace

json start_order::to_json() const
{
    json cards = json::array();
    for (const calling_card &one : leavers)
        cards.push_back(one.to_text());
    return {{"program", program},
            {"arguments", arguments},
            {"directory", directory},
            {"environment", environment},
            {"leavers", cards}};
}

start_order start_order::from_json(const json &object)
{
    start_order order;
    order.program = object.at("program");
    order.arguments = object.at("arguments").get<std::vector<std::string>>();
    order.directory = object.at("directory");
    order.environment = object.at("environment").get<std::vector<std::string>>();
    for (const std::string &card : object.at("leavers").get<std::vector<std::string>>())
        order.leavers.push_back(calling_card::from_text(card));
    return order;
}

void set_variables(std::vector<std::string> &all, const std::vector<std::string> &said)
{
    for (const std::string &one : said) {
        const std::string name = one.substr(0, one.find('=') + 1);
        std::erase_if(all, [&](const std::string &old) { return old.starts_with(name); });
        all.push_back(one);
    }
}

void become_successor(const start_order &order, pid_t parent, std::vector<std::string> variables,
                      std::initializer_list<int> kept)
{
    std::vector<std::string> words{order.program};
    words.insert(words.end(), order.arguments.begin(), order.arguments.end());
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    for (int one : kForwarded)
        std::signal(one, SIG_DFL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    for (const int fd : kept)
        fcntl(fd, F_SETFD, 0);
    const int nothing = open("/dev/null", O_RDONLY);
    dup2(nothing, 0);
    if (nothing != 0)
        close(nothing);
    const char *problem = order.directory.c_str();
    if (chdir(order.directory.c_str()) == 0) {
        problem = words[0].c_str();
        execve(words[0].c_str(), pointers(words).data(), pointers(variables).data());
    }
    std::fprintf(stderr, "zcm-launch: %s: %s\n", problem, std::strerror(errno));
    _exit(127);
}

start_order ask_for_order(const calling_card &card)
{
    const std::unique_ptr<wire> line = call(card, "order", kAnswer);
    for (;;) {
        if (const auto said = line->poll())
            return start_order::from_json(*said);
        pollfd event{line->fd(), POLLIN, 0};
        if (line->is_closed() || poll(&event, 1, static_cast<int>(kAnswer * 1000)) == 0)
            throw error(EPIPE, "no order has come from the rank that wants successors");
    }
}

} // namespace zc::migrate

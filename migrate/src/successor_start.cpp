/* SPDX-License-Identifier: BSD-3-Clause */
#include "successor_start.h"

#include <nlohmann/json.hpp>

#include "clock.h"
#include "error.h"
#include "understood.h"

namespace zc::migrate {

using nlohmann::json;

namespace {

struct invited {
    std::string host;
    std::uint64_t bytes;
    calling_card card;
};

/** Those to @host, by rank. */
std::vector<invited> of_host(const std::vector<std::string> &all, const std::string &host)
{
    std::vector<invited> found;
    for (const std::string &text : all) {
        if (text.empty())
            continue;
        invited one = understood("an invitation", text, [](const json &object) {
            return invited{object.at("host"), object.at("bytes"),
                           calling_card::from_text(object.at("card"))};
        });
        if (one.host == host)
            found.push_back(std::move(one));
    }
    return found;
}

std::string in_seconds(double limit_s)
{
    return std::to_string(static_cast<int>(limit_s)) + " s";
}

} // namespace

std::string launch_by_launcher::ask(const std::string &host, const std::string &card)
{
    host_ = host;
    return launcher_.send({{"spawn", host}, {"card", card}}) ? ""
                                                             : "the launcher of this rank is gone";
}

bool launch_by_launcher::answer(std::string &problem)
{
    while (const auto said = launcher_.poll()) {
        /* Else the answer to a request that was given up. */
        if (said->value("spawned", "") != host_)
            continue;
        problem = said->value("problem", "");
        return true;
    }
    if (launcher_.is_closed())
        problem = "the launcher of this rank is gone";
    return launcher_.is_closed();
}

successor_start::successor_start(std::string host, std::uint64_t bytes)
    : host_(std::move(host)), bytes_(bytes)
{
}

std::string successor_start::invitation() const
{
    return json{{"host", host_}, {"bytes", bytes_}, {"card", calls_.card().to_text()}}.dump();
}

std::uint64_t successor_start::bytes_of(const std::vector<std::string> &all) const
{
    std::uint64_t sum = 0;
    for (const invited &one : of_host(all, host_))
        sum += one.bytes;
    return sum;
}

std::unique_ptr<wire> successor_start::await_call(const std::vector<std::string> &all,
                                                  const start_order &order, launch_request &by,
                                                  double limit_s, const std::function<void()> &rest)
{
    bool asks = of_host(all, host_).front().card.key == calls_.card().key;
    if (asks)
        if (const std::string problem = by.ask(host_, calls_.card().to_text()); !problem.empty())
            throw error(EIO, "cannot start a successor on " + host_ + ": " + problem);
    for (const double begin = seconds(); seconds() - begin < limit_s; rest()) {
        std::string problem, why;
        if (asks && by.answer(problem)) {
            asks = false;
            if (!problem.empty())
                throw error(EIO, "cannot start a successor on " + host_ + ": " + problem);
        }
        std::unique_ptr<wire> caller = calls_.poll(why);
        if (caller && why == "successor")
            return caller;
        if (caller && why == "order")
            caller->send(order.to_json());
    }
    throw error(ETIMEDOUT,
                "no launcher on " + host_ + " after " + in_seconds(limit_s) +
                    ": mpiexec has not started zcm-launch there, or it cannot call back");
}

successor_start::started successor_start::run(const std::vector<std::string> &all,
                                              start_order order, launch_request &by, double limit_s,
                                              const std::function<void()> &rest)
{
    for (const invited &one : of_host(all, host_))
        order.leavers.push_back(one.card);
    std::unique_ptr<wire> line = await_call(all, order, by, limit_s, rest);
    for (const double begin = seconds(); seconds() - begin < limit_s; rest()) {
        while (const auto said = line->poll()) {
            if (said->contains("port"))
                return {std::move(line), said->value("port", "")};
            if (said->contains("ended"))
                throw error(EIO, "the successor on " + host_ + " " + said->value("ended", "") +
                                     " before it came to zcm_init()");
        }
        if (line->is_closed())
            throw error(EIO, "the launcher on " + host_ + " has ended");
    }
    throw error(ETIMEDOUT, "the successor on " + host_ + " has not come to zcm_init() after " +
                               in_seconds(limit_s));
}

} // namespace zc::migrate

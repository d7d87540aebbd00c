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

std::string launch_by_launcher::ask(const std::string &host,
                                    const std::vector<calling_card> &leavers)
{
    asked_.insert(host);
    return launcher_.send({{"spawn", host}, {"card", leavers.front().to_text()}})
               ? ""
               : "the launcher of this rank is gone";
}

bool launch_by_launcher::answer(const std::string &host, std::string &problem)
{
    while (const auto said = launcher_.poll()) {
        /* Else the answer to a request that was given up. */
        if (const std::string about = said->value("spawned", ""); asked_.contains(about))
            answers_[about] = said->value("problem", "");
    }
    if (const auto found = answers_.find(host); found != answers_.end()) {
        problem = found->second;
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

void successor_start::begin(const std::vector<std::string> &all, start_order order,
                            launch_request *by, double limit_s)
{
    const std::vector<invited> here = of_host(all, host_);
    for (const invited &one : here)
        order.leavers.push_back(one.card);
    order_ = std::move(order);
    limit_s_ = limit_s;
    since_ = seconds();
    if (!by || here.front().card.key != calls_.card().key)
        return; /* another one has it started */
    by_ = by;
    awaits_answer_ = true;
    if (const std::string problem = by->ask(host_, order_.leavers); !problem.empty())
        throw error(EIO, "cannot start a successor on " + host_ + ": " + problem);
}

void successor_start::await_call()
{
    std::string problem, why;
    if (awaits_answer_ && by_->answer(host_, problem)) {
        awaits_answer_ = false;
        if (!problem.empty())
            throw error(EIO, "cannot start a successor on " + host_ + ": " + problem);
    }
    std::unique_ptr<wire> caller = calls_.poll(why);
    if (caller && why == "successor") {
        started_.launcher = std::move(caller);
        since_ = seconds();
        state_ = state::called;
    } else if (caller && why == "order") {
        caller->send(order_.to_json());
    } else if (seconds() - since_ > limit_s_) {
        throw error(ETIMEDOUT, "no launcher on " + host_ + " after " + in_seconds(limit_s_) + ": " +
                                   (by_ ? by_->is_late(host_) : kNotStarted));
    }
}

void successor_start::await_port()
{
    while (const auto said = started_.launcher->poll()) {
        if (said->contains("ended"))
            throw error(EIO,
                        "the successor on " + host_ + " " + said->value("ended", "") +
                            (said->value("stood_by", false) ? " while it stood by"
                                                            : " before it came to zcm_init()"));
        if (said->contains("port")) {
            started_.port = said->value("port", "");
            started_.facts = said->value("facts", "");
            state_ = state::ready;
            return;
        }
    }
    if (started_.launcher->is_closed())
        throw error(EIO, "the launcher on " + host_ + " has ended");
    if (seconds() - since_ > limit_s_)
        throw error(ETIMEDOUT, "the successor on " + host_ + " has not come to zcm_init() after " +
                                   in_seconds(limit_s_));
}

bool successor_start::step()
{
    if (state_ == state::wanted)
        await_call();
    if (state_ == state::called)
        await_port();
    return state_ == state::ready;
}

successor_start::started successor_start::run(const std::vector<std::string> &all,
                                              start_order order, launch_request *by, double limit_s,
                                              const std::function<void()> &rest)
{
    begin(all, std::move(order), by, limit_s);
    while (!step())
        rest();
    return take();
}

} // namespace zc::migrate

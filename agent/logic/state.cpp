/* SPDX-License-Identifier: BSD-3-Clause */
#include "state.h"

#include <nlohmann/json.hpp>

namespace zc::agent {

using nlohmann::json;

std::string to_text(const saved_state &state)
{
    json j{{"version", 1}, {"id", state.id}, {"incarnation", state.incarnation}};
    if (state.asked) {
        const msg::ask &a = state.asked->ask;
        j["asked"] = {{"decider", a.txn.decider},
                      {"number", a.txn.number},
                      {"job", a.job},
                      {"epoch", a.epoch},
                      {"target", a.target},
                      {"host", a.host},
                      {"ranks", a.ranks},
                      {"lenders", state.asked->lenders},
                      {"by", state.asked->by},
                      {"life", a.incarnation},
                      {"agents", json::array()}};
        for (const member &m : state.asked->agents)
            j["asked"]["agents"].push_back({{"id", m.id},
                                            {"incarnation", m.incarnation},
                                            {"version", m.version},
                                            {"host", m.host},
                                            {"address", m.address}});
    }
    if (state.draining)
        j["draining"] = true;
    j["leases"] = json::array();
    for (const saved_state::lease &l : state.leases)
        j["leases"].push_back({{"decider", l.txn.decider},
                               {"number", l.txn.number},
                               {"job", l.rank.job},
                               {"rank", l.rank.rank}});
    return j.dump();
}

std::optional<saved_state> from_text(std::string_view text)
{
    try {
        json j = json::parse(text);
        if (j.at("version") != 1)
            return {};
        saved_state s;
        s.id = j.at("id");
        s.incarnation = j.at("incarnation");
        if (j.contains("asked")) {
            const json &a = j.at("asked");
            saved_state::intent i;
            i.ask.txn = {a.at("decider"), a.at("number")};
            i.ask.job = a.at("job");
            i.ask.epoch = a.at("epoch");
            i.ask.target = a.at("target");
            i.ask.host = a.at("host");
            i.ask.ranks = a.at("ranks").get<std::vector<rank_id>>();
            i.lenders = a.at("lenders").get<std::vector<node_id>>();
            i.by = a.value("by", kNoNode);
            i.ask.incarnation = a.value("life", std::uint64_t{0});
            for (const json &m : a.value("agents", json::array()))
                i.agents.push_back({m.at("id"),
                                    m.at("incarnation"),
                                    m.at("version"),
                                    member_state::suspect, /* until it is heard of */
                                    m.at("host"),
                                    m.at("address"),
                                    {}});
            s.asked = std::move(i);
        }
        s.draining = j.value("draining", false);
        for (const json &l : j.at("leases"))
            s.leases.push_back({{l.at("decider"), l.at("number")}, {l.at("job"), l.at("rank")}});
        return s;
    } catch (const json::exception &) {
        return {};
    }
}

} // namespace zc::agent

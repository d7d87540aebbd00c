/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include "move_party.h"
#include "remaking.h"
#include "request.h"
#include "spawn.h"
#include "successor.h"
#include "world.h"

namespace zc::migrate {

class job;

/** What rank 0 tells the others of how a move is made. */
struct move_plan {
    bool successors_stand_by = false;
    bool others_run = false;
};

/** The job in a move: by MPI. */
class job_in_move final : public move_party {
  public:
    job_in_move(job &of, const control::request &wanted, const move_plan &how);
    const greeting &hello() const noexcept { return hello_; }

    int rank() const noexcept override;
    std::string agree(const std::string &complaint) override;
    std::vector<double> greatest(std::vector<double> values) override;
    std::vector<double> total(std::vector<double> values) override;
    std::vector<std::string> gather(const std::string &text) override;
    std::string invite() override;
    void introduce(const std::vector<std::string> &all) override;
    std::unique_ptr<departure> start_successor(const std::vector<std::string> &all) override;
    const registry &data() const noexcept override;
    image_header header() const override;
    void outcome(const std::string &text) override;
    double asked() const noexcept override;
    double examined() const noexcept override;
    void let_go() override;
    void link_up(departure *mine) override;
    void release() override;
    void give_up_old_world() override;
    void enter_new_world() override;
    std::vector<double> rebuild_world(double begin) override;
    void part() override;
    void report_later(std::function<std::string(const effort_of_all &)> text) override;
    void close_door() override;
    void close_socket() override;
    [[noreturn]] void leave() override;
    [[noreturn]] void end_job(const std::string &why) override;
    void make_progress() override { migrate::make_progress(); }

  private:
    void require_room_for_images() const;

    job &job_;
    const control::request &wanted_;
    const move_plan how_;
    MPI_Comm together_; /* the ranks that agree; where the others run, leavers and rank 0 */
    greeting hello_;
    place target_; /* where this rank goes; without a name if it stays */
    std::unique_ptr<succession> succession_;
    registry data_; /* with the record of the initialisation */
    world next_;
    std::vector<communicator_record> communicators_; /* of the old world */
};

} // namespace zc::migrate

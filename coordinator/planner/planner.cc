#include "coordinator/planner/planner.h"

#include <algorithm>

#include "absl/strings/str_join.h"
#include "base/byte_count.h"
#include "coordinator/planner/layout/rank_mesh.h"
#include "coordinator/planner/layout/stages.h"
#include "coordinator/planner/layout/validate.h"
#include "coordinator/planner/memory_budget.h"
#include "coordinator/planner/model/model_spec.h"
#include "coordinator/planner/placement.h"
#include "coordinator/planner/spec/spec.h"
#include "fmt/format.h"

namespace mega::planner {
namespace {

// Enough rows for full-rate matrix products, few enough that activations stay near the caches.
constexpr int64_t kMicroBatchTokens = 4096;

// No cluster has more devices; below it products of sizes stay exact.
constexpr int64_t kMostRanks = int64_t{1} << 24;

int64_t CeilDiv(int64_t a, int64_t b) { return a / b + (a % b != 0); }

class PlanMaker {
 public:
  PlanMaker(const v1::JobSpec& spec, const ClusterView& cluster) : spec_(spec), cluster_(cluster) {}

  absl::StatusOr<v1::Plan> Make() {
    MEGA_ASSIGN_OR_RETURN(model_, MakeModelSpec(spec_));
    parameters_ = CountParameters(model_);
    if (spec_.training().global_batch_size() < 1 || spec_.data().seq_length() < 1)
      return InvalidArgument(
          "training.global_batch_size and data.seq_length must be set before planning");
    if (spec::TotalSteps(spec_) < 1)
      return InvalidArgument("training.steps is not set and neither is training.tokens");
    MEGA_RETURN_IF_ERROR(ChooseLayout());
    MEGA_RETURN_IF_ERROR(ChooseDevices());
    ChooseMicroBatch();
    Fill();
    return std::move(plan_);
  }

 private:
  template <typename... Args>
  void Reason(fmt::format_string<Args...> format, Args&&... args) {
    plan_.add_reasons(fmt::format(format, std::forward<Args>(args)...));
  }

  absl::Status ChooseLayout() {
    const v1::Parallelism& asked = spec_.parallelism();
    v1::Layout& layout = *plan_.mutable_layout();
    const auto or_one = [](int64_t size) { return std::max<int64_t>(size, 1); };
    layout.set_tensor_parallel_size(or_one(asked.tensor_parallel_size()));
    layout.set_context_parallel_size(or_one(asked.context_parallel_size()));
    layout.set_pipeline_parallel_size(or_one(asked.pipeline_parallel_size()));
    layout.set_expert_parallel_size(or_one(asked.expert_parallel_size()));
    layout.set_expert_tensor_parallel_size(asked.has_expert_tensor_parallel_size()
                                               ? asked.expert_tensor_parallel_size()
                                               : layout.tensor_parallel_size());
    layout.set_virtual_stages(or_one(asked.virtual_stages()));
    layout.set_sequence_parallel(asked.sequence_parallel());
    layout.set_context_parallel_kind(asked.context_parallel_kind());
    layout.set_data_sharding(asked.data_sharding());
    layout.set_recompute(spec_.memory().recompute());
    layout.set_rank_order(asked.rank_order());

    const std::vector<std::string> violations =
        LayoutViolations(model_, layout, spec_.data().seq_length());
    if (!violations.empty()) return absl::InvalidArgumentError(absl::StrJoin(violations, "\n"));
    int64_t replica = 0;
    if (__builtin_mul_overflow(layout.tensor_parallel_size(), layout.context_parallel_size(),
                               &replica) ||
        __builtin_mul_overflow(replica, layout.pipeline_parallel_size(), &replica) ||
        replica > kMostRanks)
      return InvalidArgument("the sizes in parallelism need more than {} devices for one replica",
                             kMostRanks);
    MEGA_RETURN_IF_ERROR(ChooseReplicas(replica));
    if (layout.data_parallel_size() > kMostRanks / replica)
      return InvalidArgument("the sizes in parallelism need more than {} devices", kMostRanks);
    world_size_ = layout.data_parallel_size() * replica;
    return RankMesh::Make(layout, world_size_).status();
  }

  absl::Status ChooseReplicas(int64_t replica) {
    const int64_t nodes = std::max<int64_t>(spec_.resources().nodes().desired(), 1);
    const int64_t batch = spec_.training().global_batch_size();
    int64_t replicas = spec_.parallelism().data_parallel_size();
    if (spec_.parallelism().has_data_parallel_size()) {
      Reason("{} data-parallel {}: parallelism.data_parallel_size says so.", replicas,
             replicas == 1 ? "replica" : "replicas");
    } else {
      const bool counted = spec_.resources().has_devices_per_node();
      const int64_t devices = counted ? nodes * spec_.resources().devices_per_node()
                                      : DevicesOfLargest(cluster_.nodes, nodes);
      if (devices < replica)
        return absl::ResourceExhaustedError(fmt::format(
            "the job needs {} devices for one replica, but {} {}; add workers or devices", replica,
            counted ? "resources give" : "the largest nodes have", devices));
      // A replica beyond these would run masked rows only.
      const int64_t micro_batch =
          spec_.training().has_micro_batch_size() ? spec_.training().micro_batch_size() : 1;
      replicas = std::min(devices / replica, CeilDiv(batch, std::max<int64_t>(micro_batch, 1)));
      Reason("{} data-parallel {}: {} {} {}{}.", replicas, replicas == 1 ? "replica" : "replicas",
             devices, devices == 1 ? "device" : "devices",
             counted ? "asked for by resources" : "of the largest nodes.desired nodes",
             replicas < devices / replica ? ", and no more replicas than micro-batches in a step"
                                          : "");
    }
    if (replicas > batch)
      Reason(
          "{} of the {} replicas hold no sample: training.global_batch_size is {}; they run fully "
          "masked rows and change nothing.",
          replicas - batch, replicas, batch);
    plan_.mutable_layout()->set_data_parallel_size(replicas);
    return absl::OkStatus();
  }

  // Devices that cannot hold what no micro-batch changes are none of the job's.
  absl::Status ChooseDevices() {
    const v1::MemoryBudget budget = BudgetOf(model_, parameters_, spec_, plan_.layout());
    const int64_t needed = FixedBytes(budget);
    const auto is_small = [needed](const v1::Device& device) {
      return device.memory_bytes() > 0 && device.memory_bytes() < needed;
    };
    int64_t largest = 0, left_out = 0, left = 0;
    for (const v1::Node& node : cluster_.nodes) {
      for (const v1::Device& device : node.devices()) {
        largest = std::max(largest, device.memory_bytes());
        (is_small(device) ? left_out : left) += 1;
      }
    }
    if (left_out == 0) {
      MEGA_ASSIGN_OR_RETURN(placement_, Place(spec_.resources(), world_size_, cluster_.nodes));
      return absl::OkStatus();
    }
    const std::string needs = fmt::format(
        "weights {}, gradients {}, optimizer {} and communication {} need {} on each device",
        FormatBytes(budget.weights_bytes()), FormatBytes(budget.grads_bytes()),
        FormatBytes(budget.optimizer_bytes()), FormatBytes(budget.comm_bytes()),
        FormatBytes(needed));
    if (left == 0) {
      return absl::ResourceExhaustedError(
          fmt::format("{}, but the largest has {}; choose a smaller model or larger devices", needs,
                      FormatBytes(largest)));
    }
    std::vector<v1::Node> nodes = cluster_.nodes;
    for (v1::Node& node : nodes) {
      auto& devices = *node.mutable_devices();
      devices.erase(std::remove_if(devices.begin(), devices.end(), is_small), devices.end());
    }
    absl::StatusOr<Placement> placed = Place(spec_.resources(), world_size_, nodes);
    if (!placed.ok()) {
      return absl::Status(placed.status().code(),
                          fmt::format("{}; {} free devices are left out: {}",
                                      std::string(placed.status().message()), left_out, needs));
    }
    placement_ = *std::move(placed);
    return absl::OkStatus();
  }

  void ChooseMicroBatch() {
    v1::Layout& layout = *plan_.mutable_layout();
    const int64_t rows = CeilDiv(spec_.training().global_batch_size(), layout.data_parallel_size());
    if (spec_.training().has_micro_batch_size()) {
      layout.set_micro_batch_size(spec_.training().micro_batch_size());
      Reason("Micro-batches of {}: training.micro_batch_size says so.", layout.micro_batch_size());
    } else {
      // The fewest micro-batches under the bound, of equal size: the fewest masked rows.
      const int64_t bound = std::max<int64_t>(kMicroBatchTokens / spec_.data().seq_length(), 1);
      const auto of_at_most = [rows](int64_t most) { return CeilDiv(rows, CeilDiv(rows, most)); };
      layout.set_micro_batch_size(of_at_most(std::min(bound, rows)));
      const int64_t wanted = layout.micro_batch_size();
      while (layout.micro_batch_size() > 1 && !Fits())
        layout.set_micro_batch_size(of_at_most(layout.micro_batch_size() - 1));
      Reason("Micro-batches of {}: {} rows a replica in equal parts of at most {} tokens{}.",
             layout.micro_batch_size(), rows,
             std::max(kMicroBatchTokens, spec_.data().seq_length()),
             layout.micro_batch_size() < wanted
                 ? fmt::format(", lowered from {} to fit {} of memory", wanted,
                               FormatBytes(placement_.memory_bytes))
                 : "");
    }
    const v1::MemoryBudget budget = BudgetOf(model_, parameters_, spec_, layout);
    if (!Fits())
      Reason("Memory may be short: about {} are needed on each device and {} are there.",
             FormatBytes(TotalBytes(budget)), FormatBytes(placement_.memory_bytes));
  }

  bool Fits() const {
    return placement_.memory_bytes == 0 ||
           TotalBytes(BudgetOf(model_, parameters_, spec_, plan_.layout())) <=
               placement_.memory_bytes;
  }

  void Fill() {
    const v1::Layout& layout = plan_.layout();
    const int64_t batch = spec_.training().global_batch_size();
    plan_.set_world_size(world_size_);
    for (const v1::RankPlacement& rank : placement_.ranks) *plan_.add_ranks() = rank;
    plan_.mutable_schedule()->set_kind(spec_.parallelism().schedule());
    plan_.mutable_schedule()->set_stages(layout.pipeline_parallel_size());
    plan_.mutable_schedule()->set_virtual_stages(layout.virtual_stages());
    const int64_t rows = layout.micro_batch_size() * layout.data_parallel_size();
    plan_.set_micro_batches(CeilDiv(batch, rows));
    plan_.set_steps(spec::TotalSteps(spec_));
    *plan_.mutable_memory() = BudgetOf(model_, parameters_, spec_, layout);
    plan_.set_flops_per_token(FlopsPerToken(model_, spec_.data().seq_length()));
    plan_.set_parameters(parameters_);
    plan_.set_threads_per_device(placement_.threads_per_device);
    FillStages();
    for (const std::string& library : placement_.numeric_libraries)
      plan_.add_numeric_libraries(library);
    plan_.set_revision(cluster_.revision);
    if (plan_.micro_batches() * rows > batch)
      Reason(
          "{} of {} rows of a step are masked: training.global_batch_size {} is no multiple of "
          "micro_batch_size {} × data_parallel_size {}.",
          plan_.micro_batches() * rows - batch, plan_.micro_batches() * rows, batch,
          layout.micro_batch_size(), layout.data_parallel_size());
    Reason("Ranks on {}, {} of each device: the fewest nodes that hold them.",
           absl::StrJoin(placement_.nodes, ", "),
           placement_.threads_per_device == 1
               ? "1 thread"
               : fmt::format("{} threads", placement_.threads_per_device));
  }

  // The head belongs to the last stage, layers to the stages that hold them.
  void FillStages() {
    ModelSpec headless = model_, layerless = model_;
    headless.vocab_size = 0;
    layerless.num_layers = 0;
    const double layers = FlopsPerToken(headless, spec_.data().seq_length());
    const double head = FlopsPerToken(layerless, spec_.data().seq_length());
    const v1::ScheduleSpec& schedule = plan_.schedule();
    for (int64_t stage = 0; stage < schedule.stages(); ++stage) {
      int64_t held = 0;
      for (int64_t chunk = 0; chunk < schedule.virtual_stages(); ++chunk)
        held +=
            LayersOf(model_.num_layers, schedule.stages(), schedule.virtual_stages(), stage, chunk)
                .count;
      plan_.add_stage_flops_per_token(layers * static_cast<double>(held) /
                                          static_cast<double>(model_.num_layers) +
                                      (stage == schedule.stages() - 1 ? head : 0));
    }
  }

  const v1::JobSpec& spec_;
  const ClusterView& cluster_;
  ModelSpec model_;
  int64_t parameters_ = 0;
  Placement placement_;
  v1::Plan plan_;
  int64_t world_size_ = 0;
};

}  // namespace

absl::StatusOr<v1::Plan> MakePlan(const v1::JobSpec& resolved, const ClusterView& cluster) {
  return PlanMaker(resolved, cluster).Make();
}

}  // namespace mega::planner

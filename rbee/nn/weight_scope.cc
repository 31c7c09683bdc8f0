#include "rbee/nn/weight_scope.h"

#include <algorithm>
#include <optional>

#include "rbee/nn/lora.h"
#include "rbee/nn/weight_packer.h"
#include "rbee/nn/weight_stash.h"
#include "rbee/ops/elementwise.h"
#include "rbee/ops/input_watch.h"

namespace rbee::nn {

namespace {

// Tells the watch of inputs, if there is one, what a model has loaded.
Tensor shown(const WeightScope& scope, std::string_view leaf, Tensor weight) {
  if (InputWatch* watch = input_watch(); watch != nullptr && weight.defined()) {
    watch->on_weight(cat(scope.role(), ".", leaf), weight);
  }
  return weight;
}

WeightOptions host_options(WeightOptions options) {
  options.device = options.host;
  options.activations = DType::f32;
  return options;
}

}  // namespace

// A device and what loads to it.
struct WeightScope::Place {
  Place(const io::Checkpoint& from, const WeightOptions& how, WeightBooks& books)
      : options(how), reader(from, how, books), packer(how, books) {}

  const WeightOptions& options;
  WeightReader reader;
  WeightPacker packer;
};

struct WeightScope::State {
  State(const io::Checkpoint& from, const WeightOptions& how)
      : checkpoint(from),
        options(how),
        options_of_host(host_options(how)),
        names(from, how.names, how.own_names),
        books(from, options),
        device(from, options, books) {
    if (how.host != nullptr) host.emplace(from, options_of_host, books);
  }

  const io::Checkpoint& checkpoint;
  WeightOptions options, options_of_host;
  WeightNames names;
  WeightBooks books;
  Place device;
  std::optional<Place> host;
  std::vector<LoraTarget> lora_targets;
  bool has_experts = false;
  std::shared_ptr<HostTrip> trip;
  std::shared_ptr<Visitors> visitors;
};

WeightScope::WeightScope(const io::Checkpoint& checkpoint, const WeightOptions& options) {
  check(options.device != nullptr, "load", "no device is given");
  if (options.stash != nullptr) options.stash->rewind();
  state_ = std::make_shared<State>(checkpoint, options);
  place_ = &state_->device;
}

WeightScope::WeightScope(std::shared_ptr<State> state, Place* place, std::string path,
                         int64_t layer)
    : state_(std::move(state)), place_(place), path_(std::move(path)), layer_(layer) {}

WeightScope WeightScope::operator/(std::string_view part) const {
  return {state_, place_, path_.empty() ? std::string(part) : cat(path_, ".", part), layer_};
}

WeightScope WeightScope::layer(int64_t index) const {
  return {state_, place_, "blk.*", index};
}

WeightScope WeightScope::on_host() const {
  RB_ASSERT(state_->host.has_value());
  return {state_, &*state_->host, path_, layer_};
}

WeightScope WeightScope::for_experts() const {
  const bool here = layer_ >= state_->options.cpu_moe_layers || place_ != &state_->device;
  return here ? *this : on_host();
}

std::shared_ptr<HostTrip> WeightScope::host_trip() const {
  if (!state_->trip) {
    state_->trip = std::make_shared<HostTrip>(*state_->options.device, *state_->options.host);
  }
  return state_->trip;
}

std::shared_ptr<Visitors> WeightScope::visitors() const {
  const WeightOptions& options = state_->options;
  if (!state_->visitors && options.op_offload_min_batch > 0 && options.host != nullptr) {
    state_->visitors = std::make_shared<Visitors>(
        *options.device, *options.host, options.activations, options.op_offload_min_batch);
  }
  return state_->visitors;
}

std::shared_ptr<const VisitingMatrix> WeightScope::visiting_matrix(std::string_view leaf,
                                                                   RowSlice rows, int64_t in,
                                                                   const Tensor& bias) const {
  const std::shared_ptr<Visitors> all = visitors();
  const bool on_host = state_->host && place_ == &*state_->host;
  if (!all || !on_host || layer_ < 0) return nullptr;
  Tensor stored = place_->reader.mapped_matrix(name(leaf), rows, in);
  if (!stored.defined()) return nullptr;
  const DType dtype = stored.dtype();
  Tensor there;
  if (bias.defined()) there = cast(contiguous(bias).to(all->device()), all->activations());
  const size_t index = all->add({std::move(stored)}, {rows.count, in}, dtype);
  return std::make_shared<VisitingMatrix>(VisitingMatrix{all, index, std::move(there)});
}

std::string WeightScope::name(std::string_view leaf) const {
  const std::string found = state_->names.in_checkpoint(path_, layer_);
  if (path_.empty()) return std::string(leaf);  // a model's own
  return cat(found.empty() ? role() : found, ".", leaf);
}

std::string WeightScope::role() const {
  return numbered(path_, layer_);
}

std::string WeightScope::hf_name() const {
  return state_->names.in_hf(path_, layer_);
}

std::vector<LoraTarget>& WeightScope::lora_targets() const {
  return state_->lora_targets;
}

bool WeightScope::has(std::string_view leaf) const {
  const std::string found = state_->names.in_checkpoint(path_, layer_);
  return !found.empty() && state_->checkpoint.find(cat(found, ".", leaf)) != nullptr;
}

const group::Membership& WeightScope::group() const {
  return state_->options.group;
}

bool WeightScope::expert_parallel() const {
  return state_->options.expert_parallel && !group().alone();
}

bool WeightScope::wants_output() const {
  return place_->options.output;
}

int64_t WeightScope::wanted_layers(int64_t layers) const {
  return std::min(layers, place_->options.first_layers);
}

bool WeightScope::is_gguf() const {
  return state_->names.is_gguf();
}

Device& WeightScope::device() const {
  return *place_->options.device;
}

DType WeightScope::activations() const {
  return place_->options.activations;
}

const WeightFigures& WeightScope::figures() const {
  return state_->books.figures();
}

bool WeightScope::rounds_inputs(std::string_view leaf) const {
  return place_->reader.rounds_inputs(name(leaf));
}

float WeightScope::matrix_scale(std::string_view leaf) const {
  const std::vector<float> scales = place_->reader.scales(name(leaf), 1);
  return scales.empty() ? 1 : scales.front();
}

std::vector<float> WeightScope::expert_scales(std::string_view leaf, int64_t experts) const {
  return place_->reader.scales(name(leaf), experts);
}

template <typename Make>
Tensor WeightScope::remembered(const Make& make) const {
  WeightStash* stash = place_->options.stash;
  if (stash == nullptr) return make();
  if (stash->filled()) return stash->next();
  const Tensor made = make();
  stash->add(made);
  return made;
}

template <typename Make>
Tensor WeightScope::own(const Make& make) const {
  return remembered([&] {
    const Tensor made = make();
    state_->books.add_resident(made.bytes());
    return made;
  });
}

void WeightScope::moved(const Tensor& from, const Tensor& to) const {
  if (place_->options.stash != nullptr) place_->options.stash->replace(from, to);
}

Tensor WeightScope::vector(std::string_view leaf, int64_t size, float offset) const {
  if (offset == 0) return array(leaf, Shape{size});
  return own([&] {
    const Tensor x = cast(place_->reader.whole(name(leaf), Shape{size}), DType::f32);
    return cast(affine(x, 1.0, offset), activations());
  });
}

Tensor WeightScope::array(std::string_view leaf, const Shape& shape) const {
  return own([&] {
    const Tensor x = cast(place_->reader.whole(name(leaf), shape), activations());
    // A tensor of that type already is copied out, so that small ones do not pin pages of the file.
    Tensor copy = empty(shape, x.dtype(), device());
    copy_(copy, x);
    return copy;
  });
}

Tensor WeightScope::stack(std::string_view leaf, const Shape& shape) const {
  const std::string full = name(leaf);
  if (!is_one_of_each(full)) return array(leaf, shape);
  return own([&] {
    Tensor rows = empty(shape, activations(), device());
    for (int64_t i = 0; i < shape[0]; ++i) {
      Tensor to = rows.slice(Axis{0}, i, 1);
      copy_(to, cast(place_->reader.row(name_of_each(full, i), shape[1]), activations()));
    }
    return rows;
  });
}

Tensor WeightScope::conv(std::string_view leaf, const Shape& shape) const {
  return remembered([&] {
    const std::string full = name(leaf);
    const Tensor packed = place_->packer.conv(full, place_->reader.whole(full, shape));
    if (!place_->reader.patched(full)) place_->reader.let_go(full);
    return packed;
  });
}

std::vector<float> WeightScope::values(std::string_view leaf, int64_t size) const {
  return cast(place_->reader.whole(name(leaf), Shape{size}), DType::f32).to_host<float>();
}

Tensor WeightScope::table(std::string_view leaf, const Shape& shape) const {
  return own([&] { return place_->reader.whole(name(leaf), shape); });
}

Tensor WeightScope::matrix(std::string_view leaf, RowSlice rows, int64_t in,
                           const std::optional<group::Range>& inputs) const {
  return shown(*this, leaf, remembered([&] {
    const std::string full = name(leaf);
    return place_->packer.matrix(full, place_->reader.matrix(full, rows, in, inputs));
  }));
}

int64_t WeightScope::input_block(std::string_view leaf) const {
  return place_->reader.input_block(name(leaf));
}

bool WeightScope::has_order(std::string_view leaf, const Shape& shape) const {
  return place_->reader.has_order(name(leaf), shape);
}

void WeightScope::leave(std::string_view leaf, const Shape& shape) const {
  place_->reader.leave(name(leaf), shape);
}

OrderedMatrix WeightScope::ordered_matrix(std::string_view leaf, RowSlice rows, int64_t in) const {
  const std::string full = name(leaf);
  const Shape shape{rows.total, in};
  WeightReader& reader = place_->reader;
  if (!reader.has_order(full, shape)) return {matrix(leaf, rows, in), {}};
  const Tensor weight =
      remembered([&] { return place_->packer.pack(reader.matrix_by_group(full, rows, in)); });
  return {weight, reader.order(full, shape)};
}

Tensor WeightScope::experts(std::string_view leaf, const Shape& shape, const StackCut& cut) const {
  state_->has_experts = true;
  const Tensor all = remembered([&] {
    const std::string full = name(leaf);
    const group::Range own = cut.of(shape[0]);
    if (cut.empty() || own.count < shape[0]) place_->reader.leave(full, shape);
    if (cut.empty()) return Tensor{};
    PagesInUse pages;
    return place_->packer.experts(own.count, [&](int64_t i) {
      return place_->reader.expert(full, own.first + i, shape, cut.matrix, pages);
    });
  });
  return shown(*this, leaf, all);
}

std::vector<Tensor> WeightScope::mapped_experts(std::string_view leaf, const Shape& shape) const {
  return place_->reader.mapped_experts(name(leaf), shape);
}

Tensor WeightScope::mxfp4_experts(std::string_view leaf, const Shape& shape, int64_t first,
                                  int64_t step, const StackCut& cut) const {
  state_->has_experts = true;
  Mxfp4Stack stack = place_->reader.mxfp4_stack(name(leaf), shape, first, step);
  if (cut.empty()) return {};
  stack.cut = cut.matrix;
  const group::Range own = cut.of(shape[0]);
  return remembered([&] {
    return place_->packer.experts(
        own.count, [&](int64_t i) { return place_->reader.mxfp4_expert(stack, own.first + i); });
  });
}

void WeightScope::finish() const {
  if (expert_parallel() && !state_->has_experts) {
    fail(Code::invalid_argument, "load", "the model has no experts that ranks could hold ",
         "(--enable-expert-parallel)");
  }
  state_->books.finish();
  if (state_->visitors) state_->visitors->start();
}

}  // namespace rbee::nn

// A trainer that knows a network, a data set and an optimizer of its own; job.yaml names them.
#include <cmath>

#include <ringmaster/train/trainer.h>
using namespace ringmaster;

// Points on two spirals that wind around each other, a class each. Made, so there is no file.
std::unique_ptr<const data::Dataset> Spirals(uint32_t points, double shift) {
  const data::SampleFormat format{.input = {{2}, tensor::DType::kF32}, .classes = 2};
  return data::MakeDataset(format, points, [=](uint32_t row, void* input, int32_t* label) {
    const double radius = (row + shift) / points, angle = 9 * radius + M_PI * (row % 2);
    static_cast<float*>(input)[0] = radius * std::cos(angle);
    static_cast<float*>(input)[1] = radius * std::sin(angle);
    *label = row % 2;
  });
}

data::Splits MakeSpirals(Settings& settings, const std::string& /*workspace*/) {
  const int64_t points = settings.Integer("points", 1000);
  return {.train = Spirals(points, 0), .held_out = Spirals(points / 4, 0.5)};
}

// Points [batch, 2] to logits [batch, classes], by layers that each add to what comes in.
nn::ValueId ResidualMlp(nn::ModelBuilder& b, Settings& settings, nn::ValueId x) {
  const int64_t width = settings.Integer("width", 32), blocks = settings.Integer("blocks", 2);
  x = nn::Linear(b, "in", x, width);
  for (int64_t i = 1; i <= blocks; ++i)
    x = graph::Add(b.graph(), x,
                   nn::Linear(b, "block" + std::to_string(i), graph::Tanh(b.graph(), x), width));
  return nn::Linear(b, "out", graph::Tanh(b.graph(), x), b.options().classes);
}

// Each weight moves against the sign of its gradient's moving average (Bernstein et al., 2018).
struct Signum : optim::Optimizer {
  Signum(const train::OptimizerSetup& s, float m) : setup(s), momentum(m), mean(s.size) {}
  void Update(std::span<float> w, std::span<const float> g,
              const optim::UpdateOptions& o) override {
    for (const optim::Segment& part : setup.segments)  // what the manifest's groups tell apart
      for (size_t i = part.begin; i < part.end; ++i) {
        const double decay = setup.weight_decay * o.weight_decay_factor * part.decay_factor;
        mean[i] = momentum * mean[i] + (1 - momentum) * o.gradient_scale * g[i];
        w[i] -= o.learning_rate * part.rate_factor * ((mean[i] > 0) - (mean[i] < 0) + decay * w[i]);
      }
  }
  std::vector<optim::StateBuffer> state() override { return {{"mean", mean}}; }
  const train::OptimizerSetup setup;
  const float momentum;
  std::vector<float> mean;
};

int main(int argc, char** argv) {
  train::Parts parts;
  parts.AddNetwork("residual-mlp", ResidualMlp);
  parts.AddDataset("spirals", MakeSpirals);
  parts.AddOptimizer("signum", [](Settings& settings, const train::OptimizerSetup& setup) {
    return std::make_unique<Signum>(setup, settings.Number("momentum", 0.9));
  });
  return train::TrainerMain(argc, argv, parts);
}

// SPDX-License-Identifier: GPL-3.0-or-later
#include "launcher/discover/product_names.h"

#include <gtest/gtest.h>

#include "core/cluster/catalogue.h"

namespace evenkeel {
namespace {

TEST(ProductNames, AreThoseOfTheCatalogue) {
  for (const char* product : {"NVIDIA A100-SXM4-80GB", "NVIDIA A100-SXM4-40GB", "NVIDIA A100 80GB PCIe", "NVIDIA A100-PCIE-40GB", "NVIDIA A800-SXM4-80GB",
                              "NVIDIA H100 80GB HBM3", "NVIDIA H200", "Tesla V100-SXM2-16GB", "Tesla V100-SXM2-32GB", "Tesla V100-SXM2-32GB-LS",
                              "Tesla V100-PCIE-32GB", "Tesla T4", "NVIDIA A10", "NVIDIA A40", "NVIDIA L40S", "NVIDIA GeForce RTX 3090",
                              "NVIDIA GeForce RTX 4090", "AMD Instinct MI300X", "910B2", "910B3", "910B4"}) {
    const std::string name = catalogueNameOf(product, {});
    ASSERT_NE(name, "") << product;
    EXPECT_TRUE(deviceTypeNamed(name)) << product << " -> " << name;
  }
  EXPECT_EQ(catalogueNameOf("NVIDIA A100-SXM4-80GB", {}), "A100-80-SXM");
  EXPECT_EQ(catalogueNameOf("NVIDIA H100 PCIe", fromGib(79.6)), "H100-80-PCIe");
}

// nanochat PR #147 (field-faults): an unknown card must not be taken for a known one.
TEST(ProductNames, AreNotGuessed) {
  for (const char* product : {"NVIDIA A10G", "NVIDIA GeForce RTX 3090 Ti", "NVIDIA GeForce RTX 4090 D", "NVIDIA GeForce RTX 4090 Laptop GPU", "NVIDIA A100X", "NVIDIA H100 NVL", "NVIDIA", ""}) {
    EXPECT_EQ(catalogueNameOf(product, {}), "") << product;
  }
  EXPECT_EQ(catalogueNameOf("NVIDIA H20", fromGib(141)), "") << "the larger card of that name has other figures";
}

}  // namespace
}  // namespace evenkeel

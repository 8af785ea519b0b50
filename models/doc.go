// Package models builds networks by name, each as a list of named blocks
// between which a pipeline may cut. Parameters have the names and the starting
// distributions that torchvision and nanoGPT give them.
//
//	m, err := models.New(models.Config{Name: "resnet20", Channels: 1, Height: 28, Width: 28, Classes: 10})
//	err = nn.Materialize(dev, m.Blocks, seed)
//	t := nn.NewTape(dev)
//	t.Begin(nn.Pass{Training: true, Seed: seed})
//	logits := nn.Forward(t, m.Blocks, t.Input(images, m.Input(batch), false))[0]
//
// A model takes images as they come from data, N x C x H x W and Plain, and
// gives logits, N x classes; gpt takes tokens, N x context (I32), and gives
// logits, N x context x vocabulary. Partners may share the layers of some models.
// The package neither trains nor loads weights.
package models

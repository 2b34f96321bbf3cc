// Package models reads what a tree says of models: model/PROVIDER/NAME with its
// control directory, and the aliases that lead to one (docs/reference/tree.md).
// It reads afresh each time, follows no link, and believes only files that
// belong to root or, in a tree of one user, to that user. What a model may be
// used for is not decided here, and nothing here reaches a provider.
package models

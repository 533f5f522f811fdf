module kueuecore/tests/yaml_scalars

go 1.25

require sigs.k8s.io/yaml v1.6.0

// Of the version that Kueue's go.mod has, at the commit that kueuecore follows.
require go.yaml.in/yaml/v2 v2.4.4 // indirect

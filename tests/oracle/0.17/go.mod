module kueuecore/oracle/kueue-0.17

go 1.26.0

require (
	kueuecore/oracle/player v0.0.0
	sigs.k8s.io/kueue v0.17.0
)

replace kueuecore/oracle/player => ../player

package main

import (
	"reflect"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

// builders register the Go types of the groups that `wanted` names.
var builders = []func(*runtime.Scheme) error{
	addMeta,
	admissionregistrationv1.AddToScheme,
	apiextensionsv1.AddToScheme,
	apiregistrationv1.AddToScheme,
	authenticationv1.AddToScheme,
	authorizationv1.AddToScheme,
	autoscalingv1.AddToScheme,
	certificatesv1.AddToScheme,
	coordinationv1.AddToScheme,
	corev1.AddToScheme,
	eventsv1.AddToScheme,
	flowcontrolv1.AddToScheme,
	rbacv1.AddToScheme,
}

type group struct {
	gv    schema.GroupVersion
	kinds []string
}

// wanted lists the kinds to describe; the types that they use follow by themselves.
var wanted = []group{
	{schema.GroupVersion{Group: "meta.k8s.io", Version: "v1"}, []string{
		"APIGroup", "APIGroupList", "APIResourceList", "APIVersions",
		"CreateOptions", "DeleteOptions", "GetOptions", "ListOptions", "PatchOptions", "UpdateOptions",
		"PartialObjectMetadata", "PartialObjectMetadataList", "Status", "WatchEvent",
	}},
	{corev1.SchemeGroupVersion, []string{
		"ConfigMap", "ConfigMapList", "Event", "EventList", "LimitRange", "LimitRangeList",
		"Namespace", "NamespaceList", "ResourceQuota", "ResourceQuotaList", "Secret", "SecretList",
		"Service", "ServiceList", "ServiceAccount", "ServiceAccountList",
	}},
	{admissionregistrationv1.SchemeGroupVersion, []string{
		"MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding",
		"MutatingAdmissionPolicyBindingList", "MutatingAdmissionPolicyList",
		"MutatingWebhookConfiguration", "MutatingWebhookConfigurationList",
		"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding",
		"ValidatingAdmissionPolicyBindingList", "ValidatingAdmissionPolicyList",
		"ValidatingWebhookConfiguration", "ValidatingWebhookConfigurationList",
	}},
	{apiextensionsv1.SchemeGroupVersion, []string{
		"CustomResourceDefinition", "CustomResourceDefinitionList",
	}},
	{apiregistrationv1.SchemeGroupVersion, []string{"APIService", "APIServiceList"}},
	{authenticationv1.SchemeGroupVersion, []string{
		"SelfSubjectReview", "TokenRequest", "TokenReview",
	}},
	{authorizationv1.SchemeGroupVersion, []string{
		"LocalSubjectAccessReview", "SelfSubjectAccessReview", "SelfSubjectRulesReview",
		"SubjectAccessReview",
	}},
	{autoscalingv1.SchemeGroupVersion, []string{"Scale"}},
	{certificatesv1.SchemeGroupVersion, []string{
		"CertificateSigningRequest", "CertificateSigningRequestList",
	}},
	{coordinationv1.SchemeGroupVersion, []string{"Lease", "LeaseList"}},
	{eventsv1.SchemeGroupVersion, []string{"Event", "EventList"}},
	{flowcontrolv1.SchemeGroupVersion, []string{
		"FlowSchema", "FlowSchemaList",
		"PriorityLevelConfiguration", "PriorityLevelConfigurationList",
	}},
	{rbacv1.SchemeGroupVersion, []string{
		"ClusterRole", "ClusterRoleBinding", "ClusterRoleBindingList", "ClusterRoleList",
		"Role", "RoleBinding", "RoleBindingList", "RoleList",
	}},
}

// extraTypes are wanted although no kind above uses them.
var extraTypes = []reflect.Type{
	reflect.TypeFor[metav1.Condition](),
	reflect.TypeFor[metav1.LabelSelector](),
}

// addMeta registers the kinds of meta/v1 under their own group.
func addMeta(s *runtime.Scheme) error {
	gv := schema.GroupVersion{Group: "meta.k8s.io", Version: "v1"}
	s.AddKnownTypes(gv,
		&metav1.APIGroup{}, &metav1.APIGroupList{}, &metav1.APIResourceList{}, &metav1.APIVersions{},
		&metav1.CreateOptions{}, &metav1.DeleteOptions{}, &metav1.GetOptions{}, &metav1.ListOptions{},
		&metav1.PatchOptions{}, &metav1.UpdateOptions{},
		&metav1.PartialObjectMetadata{}, &metav1.PartialObjectMetadataList{}, &metav1.Status{})
	s.AddKnownTypeWithName(gv.WithKind("WatchEvent"), &metav1.WatchEvent{})
	return nil
}
